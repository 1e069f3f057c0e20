# A coo_tensor is a list: handle (external pointer), modes (names), labels (per mode NULL or the names of rows), spec (NULL or
# the parsed formula), sized (whether the sizes of the modes are given, not those of the largest indices), is_file (TRUE if it
# was opened).
new_tensor <- function(handle, modes, labels, spec = NULL, sized = FALSE) {
  structure(list(handle = handle, modes = modes, labels = labels, spec = spec, sized = sized), class = "coo_tensor")
}

coo_tensor <- function(..., values = NULL, dims = NULL, weights = NULL) {
  columns <- list(...)
  if (length(columns) == 0) bad_argument("give a vector of indices or names for each mode")
  names(columns) <- mode_names(columns)
  tensor_from_columns(columns, values, dims, weights)
}

as_coo_tensor <- function(x, ...) UseMethod("as_coo_tensor")

as_coo_tensor.coo_tensor <- function(x, ...) x

as_coo_tensor.default <- function(x, ...) {
  if (inherits(x, "Matrix")) return(tensor_from_sparse(x))
  # Tables and other arrays with a class.
  if (is.array(x)) return(as_coo_tensor.array(unclass(x), ...))
  bad_argument("an object of class ", class(x)[1], " is not a tensor; use coo_tensor(), a data frame, a matrix or a path")
}

as_coo_tensor.character <- function(x, ...) open_coo(x, ...)

as_coo_tensor.data.frame <- function(x, value, weights = NULL, ...) {
  check_no_dots(...)
  if (length(x) == 0) bad_argument("the data frame has no columns")
  check_unique(names(x))
  if (missing(value)) value <- value_column(x, setdiff(names(x), weights))
  if (!is.null(value) && !check_string(value, "value") %in% names(x)) bad_argument("there is no column ", value)
  if (!is.null(weights) && !check_string(weights, "weights") %in% names(x)) bad_argument("there is no column ", weights)
  columns <- as.list(x)[!names(x) %in% c(value, weights)]
  if (length(columns) == 0) bad_argument("the data frame has no columns for modes besides ", value)
  names(columns) <- mode_names(columns)
  values <- if (is.null(value)) NULL else x[[value]]
  tensor_from_columns(columns, values, NULL, if (is.null(weights)) NULL else x[[weights]])
}

# Names of the columns of values, as in text files.
value_names <- c("rating", "value", "stars", "score", "count")

# The column of values among `others`, which are neither modes nor weights: the only one; else the one with a usual name; else the
# only one with numbers.
value_column <- function(data, others) {
  named <- others[tolower(trimws(others)) %in% value_names]
  numbers <- others[vapply(as.list(data)[match(others, names(data))], is.numeric, NA)]
  for (found in list(others, named, numbers)) if (length(found) == 1) return(found)
  if (length(numbers) == 0) bad_argument("the data has no column of numbers for the values")
  if (length(named) > 0) {
    candidates <- named
    why <- " may have them"
  } else {
    candidates <- numbers
    why <- paste0(" have numbers, and none is called ", paste(value_names[-length(value_names)], collapse = ", "), " or ",
      value_names[length(value_names)])
  }
  bad_argument("which column has the values? ", paste(candidates, collapse = ", "), why, "; name it, such as value = \"",
    candidates[length(candidates)], "\" in as_coo_tensor(), or use a formula")
}

# Cells that are NA are not observed.
as_coo_tensor.array <- function(x, drop_zeros = FALSE, ...) {
  check_no_dots(...)
  if (!is.numeric(x) && !is.logical(x)) bad_argument("the array does not have numbers")
  observed <- if (check_flag(drop_zeros, "drop_zeros")) which(x != 0) else which(!is.na(x))
  indices <- arrayInd(observed, dim(x))
  columns <- lapply(seq_along(dim(x)), function(n) indices[, n])
  labels <- dimnames(x)
  if (is.null(labels)) labels <- vector("list", length(columns))
  names(columns) <- mode_names(labels, length(columns))
  handle <- new_coo(columns, as.double(x[observed]), dim(x))
  new_tensor(handle, names(columns), checked_names(labels), sized = TRUE)
}

as_coo_tensor.matrix <- as_coo_tensor.array

# Sparse matrices of package Matrix: stored entries, of which those of one cell are summed.
tensor_from_sparse <- function(x) {
  if (!requireNamespace("Matrix", quietly = TRUE)) bad_argument("package Matrix is not installed")
  x <- as(as(x, "generalMatrix"), "CsparseMatrix")
  values <- if (methods::.hasSlot(x, "x")) as.double(x@x) else rep(1, length(x@i))
  columns <- list(row = x@i, column = rep.int(seq_len(ncol(x)) - 1L, diff(x@p)))
  handle <- new_coo(columns, values, dim(x), base = 0L)
  new_tensor(handle, names(columns), checked_names(x@Dimnames), sized = TRUE)
}

# Names of rows and columns of a matrix, or along the dimensions of an array, which must identify them.
checked_names <- function(names) {
  sides <- if (length(names) == 2) c("rows", "columns") else paste("slices of dimension", seq_along(names))
  Map(function(side, what) {
    if (anyNA(side)) bad_argument("a name of the ", what, " is NA")
    second <- anyDuplicated(side)
    if (second > 0) bad_argument("two ", what, " are named ", side[second], ": ", match(side[second], side), " and ", second)
    side
  }, unname(names), sides, USE.NAMES = FALSE)
}

as_coo_tensor.formula <- function(x, data = NULL, weights = NULL, ...) {
  check_no_dots(...)
  tensor_from_formula(x, data, substitute(weights))
}

tensor_from_columns <- function(columns, values, dims, weights, spec = NULL) {
  parsed <- Map(index_column, columns, names(columns))
  indices <- lapply(parsed, `[[`, "index")
  if (is.null(dims) && all(lengths(indices) == 0)) bad_argument("there are no entries; give at least one")
  if (is.null(values)) values <- rep(1, length(indices[[1]]))
  handle <- new_coo(indices, numeric_values(values), dims, weights)
  labels <- lapply(parsed, `[[`, "labels")
  check_dims(dims, labels, names(columns))
  new_tensor(handle, names(columns), unname(labels), spec, sized = !is.null(dims))
}

check_dims <- function(dims, labels, modes) {
  if (is.null(dims)) return()
  short <- which(lengths(labels) > dims)
  if (length(short) > 0) {
    bad_argument("mode ", modes[short[1]], " has ", length(labels[[short[1]]]), " names, but its size in dims is ",
      dims[short[1]])
  }
}

numeric_values <- function(values) {
  check_vector(values, "the values")
  if (!is.numeric(values) && !is.logical(values)) {
    bad_argument("values are of class ", class(values)[1], "; they must be numbers")
  }
  as.double(values)
}

new_coo <- function(indices, values, dims = NULL, weights = NULL, base = 1L) {
  if (!is.null(weights)) {
    if (!is.numeric(weights)) bad_argument("weights are of class ", class(weights)[1], "; they must be numbers")
    weights <- as.double(weights)
  }
  if (!is.null(dims) && !(is.numeric(dims) && isTRUE(all(dims >= 0 & dims <= 2^32 & dims == trunc(dims))))) {
    bad_argument("dims must be whole numbers from 0 to 2^32")
  }
  .Call(r_coo_new, indices, base, values, dims, weights)
}

# Row indices and names of rows of a column. Factors and strings have names, numbers are row indices.
index_column <- function(x, mode) {
  check_vector(x, paste("the rows of mode", mode))
  if (is.factor(x)) {
    x <- without_na_level(x)
    return(list(index = x, labels = levels(x)))
  }
  if (is.logical(x) && !all(is.na(x))) x <- as.character(x)
  if (is.character(x)) {
    labels <- unique(x)
    labels <- labels[!is.na(labels)]
    return(list(index = match(x, labels), labels = enc2utf8(labels)))
  }
  if (is.object(x) || !is.numeric(x)) {
    bad_argument("mode ", mode, " is of class ", class(x)[1], "; it must be a factor, strings, or row indices from 1",
      if (inherits(x, c("Date", "POSIXt"))) paste0(". For months use format(", mode, ", \"%Y-%m\")"))
  }
  list(index = x, labels = NULL)
}

# 64-bit integers of package bit64 are doubles with other bits.
check_vector <- function(x, what) {
  if (inherits(x, "integer64")) {
    bad_argument(what, " are of class integer64; convert them with as.double(), or ids with as.character()")
  }
  if (length(dim(x)) > 1 && length(x) != nrow(x)) bad_argument(what, " are a matrix with ", ncol(x), " columns; give a vector")
}

# addNA() makes NA a level; a missing row is missing nevertheless.
without_na_level <- function(x) if (anyNA(levels(x))) factor(x, levels(x)[!is.na(levels(x))]) else x

mode_names <- function(columns, count = length(columns)) {
  given <- names(columns)
  if (is.null(given)) given <- rep("", count)
  given <- ifelse(is.na(given) | given == "", paste0("mode", seq_len(count)), given)
  if (anyDuplicated(given)) bad_argument("two modes are named ", given[anyDuplicated(given)])
  given
}
