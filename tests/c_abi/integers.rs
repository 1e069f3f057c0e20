//! Every integer parameter of every function, and every integer field of every struct that a function reads, with numbers that no
//! machine can do. The calls are generated from the header, so a new parameter is tested, or fails this test until it has a value.
#![cfg(target_os = "linux")]

use std::fmt::Write;
use std::fs;

use crate::common::native::{LibraryFolder, compilers, run_ok};
use crate::common::workspace_root;

/// A parameter or a field: its type, with the stars of pointers, and its name.
struct Variable {
    kind: String,
    name: String,
}

struct Function {
    name: String,
    returns_status: bool,
    parameters: Vec<Variable>,
}

/// Returns the header without comments and preprocessor lines.
fn code() -> String {
    let header = fs::read_to_string(workspace_root().join("include/s3cmtf.h")).unwrap();
    let declarations = header.split_once("extern \"C\" {").unwrap().1;
    let mut code = String::new();
    for part in declarations.split("*/") {
        code += part.split("/*").next().unwrap();
    }
    let lines = code.lines().filter(|l| !l.trim_start().starts_with('#'));
    lines.collect::<Vec<_>>().join(" ")
}

/// Splits a declaration such as `const char *const *names`.
fn variable(text: &str) -> Variable {
    let text = text.trim();
    let at = text.rfind([' ', '*']).unwrap() + 1;
    let (kind, name) = text.split_at(at);
    Variable {
        kind: kind.split_whitespace().collect::<Vec<_>>().join(" "),
        name: name.to_string(),
    }
}

/// Returns the declarations of functions.
fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for statement in code.split(';') {
        let Some((head, rest)) = statement.split_once(" s3cmtf_") else {
            continue;
        };
        let is_function =
            rest.contains('(') && !statement.contains('{') && !head.contains("typedef");
        // A function that returns a pointer: `const char *s3cmtf_version(void)`.
        let statement = statement.replace("*s3cmtf_", "* s3cmtf_");
        if !is_function && !statement.contains("* s3cmtf_status_name(") {
            continue;
        }
        let (head, rest) = statement.split_once(" s3cmtf_").unwrap();
        let (name, parameters) = rest.split_once('(').unwrap();
        let parameters = parameters.split(')').next().unwrap();
        found.push(Function {
            name: format!("s3cmtf_{name}"),
            returns_status: head.contains("S3CMTF_CHECK_STATUS"),
            parameters: parameters
                .split(',')
                .filter(|p| p.trim() != "void")
                .map(variable)
                .collect(),
        });
    }
    found
}

/// Returns the fields of a struct; `None` if its fields are not declared.
fn fields(code: &str, name: &str) -> Option<Vec<Variable>> {
    let body = code.split_once(&format!("typedef struct {name} {{"))?.1;
    let fields = body.split('}').next().unwrap().split(';');
    Some(
        fields
            .filter(|f| !f.trim().is_empty())
            .map(variable)
            .collect(),
    )
}

/// Returns the array of numbers to try and its length for an integer type.
fn numbers(kind: &str) -> Option<(&'static str, &'static str)> {
    match kind {
        "uint64_t" => Some(("NUMBERS", "NUMBER_COUNT")),
        "int32_t" => Some(("SMALL_NUMBERS", "SMALL_NUMBER_COUNT")),
        "uint32_t" => Some(("UNSIGNED_NUMBERS", "UNSIGNED_NUMBER_COUNT")),
        _ => None,
    }
}

/// Returns the argument for a parameter that is not under test.
fn argument(function: &str, parameter: &Variable) -> String {
    let Variable { kind, name } = parameter;
    let text = match (kind.as_str(), name.as_str()) {
        ("s3cmtf_error *", _) => "error",
        ("const s3cmtf_model *", _) => "model",
        ("const s3cmtf_coo *", "matrix" | "valid") => "genres",
        ("const s3cmtf_coo *", _) => "coo",
        ("const s3cmtf_problem *", _) => "problem",
        // The matrices of the problem stay as they are.
        ("s3cmtf_problem *", _) => "problem",
        ("const s3cmtf_options *" | "s3cmtf_options *", _) => "options",
        ("s3cmtf_fit *", _) => "fit",
        ("const s3cmtf_tune *", _) => "tune",
        ("const s3cmtf_names *", _) => "names",
        ("const s3cmtf_concepts *", _) => "concepts",
        ("const s3cmtf_clusters *", _) => "clusters",
        ("const s3cmtf_text *", _) => "text",
        ("const s3cmtf_cancel *", _) => "NULL",
        ("s3cmtf_view *", _) => "&view",
        ("const char *", "name") => "\"epochs\"",
        ("const char *", "path" | "prefix") => "\"/no/such/folder/x\"",
        ("const char *", "options") => "\"epochs=1\"",
        ("char *", _) => "(char *)scratch",

        ("uint64_t *" | "void *" | "double *", _) => return "(void *)scratch".to_string(),
        ("const uint64_t *", _) => "rows",
        ("const void *", "weights") => "data.stars",
        ("const void **", _) => "&pointer",
        ("const uint32_t **", _) => "(const uint32_t **)&pointer",
        ("const char **", _) => "(const char **)&pointer",
        ("int32_t *", _) => "&integer",
        ("uint64_t", "capacity") => "CAPACITY / 2",
        ("int32_t", "number_type") => "S3CMTF_F64",
        ("int32_t", "weight_type") => "S3CMTF_F32",
        ("int32_t", "index_type") => "S3CMTF_U64",
        ("uint64_t", "mode") if function != "s3cmtf_names_open_beside" => "1",
        ("uint64_t" | "int32_t", _) => "0",
        (kind, _) => {
            if let Some(object) = kind.strip_suffix(" **") {
                return format!("&made.{}", object.strip_prefix("s3cmtf_").unwrap());
            }
            let object = kind
                .strip_suffix(" *")
                .unwrap_or_else(|| panic!("{function}: {kind}{name}"));
            return match object.strip_prefix("const ") {
                Some(request) => format!("&valid_{request}"),
                None => format!("sized(sizeof({object}))"),
            };
        }
    };
    text.to_string()
}

/// Returns a call with `changed` as the argument of one parameter.
fn call(function: &Function, position: usize, changed: &str) -> String {
    let arguments = function
        .parameters
        .iter()
        .enumerate()
        .map(|(k, p)| match k == position {
            true => changed.to_string(),
            false => argument(&function.name, p),
        });
    format!(
        "{}({})",
        function.name,
        arguments.collect::<Vec<_>>().join(", ")
    )
}

/// Returns whether a field is the length of arrays of the caller, or the distance of their elements. With a large number that a
/// system may have the arrays are NULL, since the program has no arrays of that length.
fn is_length(field: &str) -> bool {
    field.ends_with("count") || ["stride", "order"].contains(&field)
}

/// Writes the calls for all integer fields of a struct, which a call takes as `request`.
fn write_fields(
    out: &mut String,
    code: &str,
    name: &str,
    path: &str,
    call: &str,
    tested: &mut usize,
) {
    for field in fields(code, name).unwrap() {
        let place = format!("{path}.{}", field.name);
        if fields(code, &field.kind).is_some() {
            write_fields(out, code, &field.kind, &place, call, tested);
        }
        let Some((list, count)) = numbers(&field.kind) else {
            continue;
        };
        // The pointers beside a length.
        let pointers = fields(code, name)
            .unwrap()
            .into_iter()
            .filter(|f| f.kind.ends_with('*'));
        let clear: String = pointers
            .filter(|f| f.kind != "const s3cmtf_cancel *" && is_length(&field.name))
            .map(|f| format!("{path}.{} = NULL; ", f.name))
            .collect();
        let clear = match clear.as_str() {
            "" => String::new(),
            clear => format!("if ({list}[k] < NUMBERS[2]) {{ {clear}}}\n        "),
        };
        writeln!(
            out,
            "    for (int k = 0; k < {count}; k++) {{\n        request = base;\n        {clear}{place} = {list}[k];\n        \
             checked({call}, \"{} {place}\", (uint64_t){list}[k]);\n    }}",
            call.split('(').next().unwrap()
        )
        .unwrap();
        *tested += 1;
    }
}

/// Returns the program, and the numbers of parameters and of fields that it tests.
fn program() -> (String, usize, usize) {
    let code = code();
    let (mut calls, mut main) = (String::new(), String::new());
    let (mut parameters, mut tested_fields) = (0, 0);
    for function in functions(&code) {
        let mut body = String::new();
        for (position, parameter) in function.parameters.iter().enumerate() {
            let name = &parameter.name;
            if let Some((list, count)) = numbers(&parameter.kind) {
                let call = call(&function, position, &format!("{list}[k]"));
                let statement = match function.returns_status {
                    true => format!(
                        "checked({call}, \"{} {name}\", (uint64_t){list}[k]);",
                        function.name
                    ),
                    false => format!("(void){call};"),
                };
                writeln!(body, "    for (int k = 0; k < {count}; k++) {statement}").unwrap();
                parameters += 1;
            }
            let of_struct = parameter
                .kind
                .strip_prefix("const ")
                .and_then(|k| k.strip_suffix(" *"));
            if let Some(name) = of_struct.filter(|name| fields(&code, name).is_some()) {
                writeln!(body, "    {{ {name} request, base = valid_{name}();").unwrap();
                let call = call(&function, position, "&request");
                write_fields(&mut body, &code, name, "request", &call, &mut tested_fields);
                body += "    }\n";
            }
        }
        if body.is_empty() {
            continue;
        }
        // Copies of the valid requests, since arguments are addresses.
        let mut requests = String::new();
        for parameter in &function.parameters {
            let of_struct = parameter
                .kind
                .strip_prefix("const ")
                .and_then(|k| k.strip_suffix(" *"));
            if let Some(name) = of_struct.filter(|name| fields(&code, name).is_some()) {
                writeln!(
                    requests,
                    "    const {name} valid_{name}_ = valid_{name}();\n    (void)valid_{name}_;"
                )
                .unwrap();
                body = body.replace(&format!("&valid_{name},"), &format!("&valid_{name}_,"));
            }
        }
        writeln!(
            calls,
            "static void test_{}(void)\n{{\n{requests}{body}}}",
            function.name
        )
        .unwrap();
        writeln!(main, "    test_{}();", function.name).unwrap();
    }
    let beginning = workspace_root().join("c_tests/integers.h");
    let text = format!(
        "#include \"{}\"\n\n{calls}\nint main(void)\n{{\n    begin();\n{main}    fit_with_all_options();\n    \
         use_ends_of_ranges();\n    end();\n    return 0;\n}}\n",
        beginning.display()
    );
    (text, parameters, tested_fields)
}

#[test]
fn integers_that_no_machine_can_do_are_statuses() {
    let (program, parameters, fields) = program();
    println!("{parameters} parameters, {fields} fields");
    assert!(parameters > 80 && fields > 60, "{parameters} {fields}");
    let library = LibraryFolder::new("integers");
    let source = library.path().join("integers.c");
    fs::write(&source, &program).unwrap();

    let compiled = library.compile(compilers()[0].0, "c99", source.to_str().unwrap());
    assert_eq!(run_ok(compiled, [""; 0]), "ok\n");
}
