#!/usr/bin/env python3
"""Compares the declarations of the Julia package with the C header; needs neither Julia nor a C compiler.

    signatures.py [HEADER]

Every `@declare` in src/c_functions.jl must name a function of the header with the same result and argument types. Every struct in
src/c_types.jl must have the fields of the struct in C, in order and with the same types, and every constant its value. The package may
leave out functions, but calls only those that it declares.
"""
import pathlib
import re
import sys

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
SCALARS = {
    "int32_t": "Int32", "uint32_t": "UInt32", "uint64_t": "UInt64",
    "float": "Float32", "double": "Float64", "void": "Cvoid",
}


def julia_type(declaration, callbacks):
    """Returns the Julia type of a C type such as `const s3cmtf_coo *const *`."""
    words = re.findall(r"\w+|\*", declaration)
    is_const = words[0] == "const"
    words = [word for word in words if word not in ("const", "struct")]
    base, pointers = words[0], words[1:].count("*")
    if base in callbacks:
        return "Ptr{Cvoid}"
    if base == "char":
        # Texts that the library only reads or returns, and buffers that it writes.
        base, pointers = ("Cstring", pointers - 1) if is_const else ("UInt8", pointers)
    base = SCALARS.get(base, base)
    return "Ptr{" * pointers + base + "}" * pointers


def split_name(declaration):
    """Splits `const char *path` into its type and its name."""
    return re.fullmatch(r"(.*?)(\w+)", declaration.strip(), re.S).groups()


def read_header(path):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S).replace("S3CMTF_CHECK_STATUS ", "")
    callbacks = set(re.findall(r"typedef int32_t \(\*(\w+)\)", text))
    opaque = set(re.findall(r"typedef struct (\w+) \w+;", text))
    constants = dict(re.findall(r"#define (S3CMTF_\w+) (-?\d+)$", text, re.M))
    structs = {}
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \w+;", text, re.S):
        fields = [split_name(field) for field in body.split(";") if field.strip()]
        structs[name] = [(field, julia_type(c_type, callbacks)) for c_type, field in fields]
    functions = {}
    for result, name, parameters in re.findall(r"^([\w \*]+?)(s3cmtf_\w+)\(([^)]*)\);", text, re.M | re.S):
        types = [] if parameters.strip() == "void" else [split_name(p)[0] for p in parameters.split(",")]
        functions[name] = ([julia_type(t, callbacks) for t in types], julia_type(result, callbacks))
    return opaque, constants, structs, functions


def split_types(text):
    return re.findall(r"\w+(?:\{+[\w{}]*\}+)?", text)


def read_package():
    types = (PACKAGE / "src" / "c_types.jl").read_text()
    opaque = set(re.findall(r"^struct (\w+) end$", types, re.M))
    constants = dict(re.findall(r"^const (\w+) = Int32\((-?\d+)\)$", types, re.M))
    structs = {}
    for name, body in re.findall(r"^struct (\w+)\n(.*?)^end$", types, re.M | re.S):
        structs[name] = re.findall(r"^    (\w+)::(\S+)$", body, re.M)
    functions = {}
    source = (PACKAGE / "src" / "c_functions.jl").read_text()
    for name, parameters, result in re.findall(r"^@declare (\w+)\((.*?)\)::(\S+)$", source, re.M | re.S):
        functions[name] = (split_types(parameters), result)
    return opaque, constants, structs, functions


def called_functions():
    """Names of library functions in the sources but the declarations, with the file that has each."""
    found = {}
    for path in sorted((PACKAGE / "src").glob("*.jl")):
        if path.name in ("c_functions.jl", "c_types.jl"):
            continue
        for name in re.findall(r"\bs3cmtf_\w+", path.read_text()):
            found.setdefault(name, path.name)
    return found


def main():
    header = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE.parent.parent / "include" / "s3cmtf.h"
    c_opaque, c_constants, c_structs, c_functions = read_header(header)
    opaque, constants, structs, functions = read_package()
    errors = []
    for what, ours, theirs in (("function", functions, c_functions), ("struct", structs, c_structs),
                               ("constant", constants, c_constants)):
        for name, declaration in ours.items():
            if name not in theirs:
                errors.append(f"{what} {name} is not in the header")
            elif declaration != theirs[name]:
                errors.append(f"{what} {name}:\n  package {declaration}\n  header  {theirs[name]}")
    errors += [f"opaque type {name} is not in the header" for name in sorted(opaque - c_opaque)]
    known = set(functions) | set(structs) | opaque
    errors += [f"{file} uses {name}, which is not declared" for name, file in called_functions().items() if name not in known]
    used = set(called_functions())
    internal = (PACKAGE / "src" / "c_functions.jl").read_text().split("@declare s3cmtf_")[0]
    errors += [f"{name} is declared and never used" for name in functions if name not in used and name not in internal]
    if not functions or not structs or not constants or not c_functions:
        errors.append("no declarations were found")
    print("\n".join(errors) if errors else
          f"{len(functions)} of {len(c_functions)} functions, {len(structs)} structs and {len(constants)} constants agree with {header.name}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
