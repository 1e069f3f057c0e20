# value ~ mode + mode + ..., where a mode is a column or an expression such as factor(user).
parse_formula <- function(formula, data) {
  check_data(data)
  right <- formula[[length(formula)]]
  response <- if (length(formula) == 3) formula[[2]] else NULL
  if (identical(right, quote(.))) {
    if (is.null(names(data))) bad_argument("the formula has a dot, but there is no data frame")
    terms <- lapply(setdiff(names(data), all.vars(response)), as.name)
  } else {
    terms <- summands(right)
  }
  names(terms) <- vapply(terms, term_name, "")
  if (anyDuplicated(names(terms))) bad_argument("mode ", names(terms)[anyDuplicated(names(terms))], " occurs twice")
  used <- unique(unlist(lapply(c(terms, response), all.vars)))
  missing <- used[!used %in% names(data) & !vapply(used, exists, NA, envir = environment(formula))]
  if (length(missing) > 0) {
    bad_argument("there is no column ", enumerate(missing), " in the data; its columns are ",
      paste(names(data), collapse = ", "))
  }
  check_unique(names(data)[names(data) %in% used])
  list(response = response, terms = terms, columns = intersect(used, names(data)), environment = environment(formula))
}

summands <- function(e) {
  if (is.call(e)) {
    operator <- as.character(e[[1]])[1]
    if (operator == "+" && length(e) == 3) return(c(summands(e[[2]]), summands(e[[3]])))
    if (operator == "(") return(summands(e[[2]]))
    if (operator %in% c("*", ":", "-", "^", "|", "/", "+", "~")) {
      bad_argument("the right side of the formula lists the modes, separated by +; it has ", deparse(e)[1])
    }
  } else if (!is.name(e)) {
    bad_argument("the right side of the formula lists the modes, separated by +; it has ", deparse(e)[1])
  }
  list(e)
}

# factor(user) is mode user.
term_name <- function(e) {
  variables <- all.vars(e)
  if (length(variables) == 1) variables else deparse(e)[1]
}

check_data <- function(data) {
  if (is.null(data) || is.list(data) || is.environment(data)) return()
  bad_argument("data must be a data frame or a list of columns, but it is of class ", class(data)[1])
}

# The value of an expression in terms of columns of the data.
evaluate_expression <- function(expression, data, environment) {
  tryCatch(eval(expression, data, environment), error = function(condition) {
    if (inherits(condition, "s3cmtf_error")) stop(condition)
    bad_argument("cannot evaluate ", deparse(expression)[1], " in the data: ", conditionMessage(condition))
  })
}

# `weights` is an expression.
tensor_from_formula <- function(formula, data, weights) {
  spec <- parse_formula(formula, data)
  columns <- lapply(spec$terms, evaluate_expression, data, spec$environment)
  values <- evaluate_expression(spec$response, data, spec$environment)
  weights <- evaluate_expression(weights, data, spec$environment)
  tensor_from_columns(columns, values, NULL, weights, spec)
}
