# Modes and rows of tensors and models by name. `frame` is a coo_tensor or a model: both have modes, labels and spec.

mode_number <- function(frame, mode, argument = "mode") {
  if (is.factor(mode)) mode <- as.character(mode)
  if (!is.character(mode) && !is.numeric(mode) || length(mode) != 1 || is.na(mode)) {
    bad_argument(argument, " must be the name or the number of one mode")
  }
  if (is.character(mode)) {
    number <- match(mode, frame$modes)
    if (is.na(number)) bad_argument("there is no mode ", mode, "; the modes are ", paste(frame$modes, collapse = ", "))
    return(number)
  }
  if (!mode %in% seq_along(frame$modes)) {
    bad_argument(argument, " is ", mode, "; modes are numbered from 1 to ", length(frame$modes))
  }
  as.integer(mode)
}

# Indices of rows; NA for missing values and `unknown` for names that no row has.
match_rows <- function(x, labels, mode, unknown) {
  check_vector(x, paste("the rows of mode", mode))
  if (is.list(x)) bad_argument("the rows of mode ", mode, " are a list; give a vector")
  if (is.null(labels)) {
    if (is.factor(x) || is.character(x) || is.object(x)) {
      bad_argument("mode ", mode, " has row numbers and no names, but the rows are given as ", class(x)[1])
    }
    if (!is.numeric(x) && !all(is.na(x))) bad_argument("the rows of mode ", mode, " are not numbers")
    return(if (is.numeric(x)) x else as.integer(x))
  }
  if (is.factor(x)) {
    matched <- match(levels(x), labels, nomatch = unknown)
    matched[is.na(levels(x))] <- NA
    return(matched[x])
  }
  matched <- match(as.character(x), labels, nomatch = unknown)
  matched[is.na(x)] <- NA
  matched
}

# Indices of rows that must have a name, or be in the range of row numbers.
find_rows <- function(frame, number, rows) {
  mode <- frame$modes[number]
  found <- match_rows(rows, frame$labels[[number]], mode, 0L)
  if (anyNA(found)) bad_argument("a row of mode ", mode, " is NA")
  if (is.null(frame$labels[[number]])) {
    size <- model_info(frame)$modes$dim[number]
    wrong <- which(found < 1 | found > size | found != trunc(found))
    if (length(wrong) > 0) {
      bad_argument("mode ", mode, " has no row ", enumerate(unique(rows[wrong])), "; its rows are numbered from 1 to ",
        format(size, scientific = FALSE))
    }
  } else if (any(found == 0)) {
    bad_argument("mode ", mode, " has no row ", enumerate(unique(as.character(rows)[found == 0])))
  }
  found
}

# The same for rows that need a factor row: levels without entries after all others are beyond the model.
find_fitted_rows <- function(frame, number, rows) {
  found <- find_rows(frame, number, rows)
  absent <- found > model_info(frame)$modes$dim[number]
  if (any(absent)) {
    bad_argument("row ", enumerate(unique(as.character(rows)[absent])), " of mode ", frame$modes[number],
      " has no entries, so that the model does not have it")
  }
  found
}

# Names of rows, or their numbers if the mode has no names.
name_rows <- function(labels, rows) {
  if (is.null(labels)) return(if (all(rows <= .Machine$integer.max)) as.integer(rows) else rows)
  names <- labels[rows]
  names[is.na(names)] <- as.character(rows[is.na(names)])
  names
}

# The first index of a mode that has neither a name nor a row.
beyond <- function(labels) length(labels) + 1L

# One index vector per mode for the rows of `data`.
frame_indices <- function(frame, data) {
  columns <- frame_columns(frame, data)
  for (n in attr(columns, "by_position")) check_some_known(frame, n, columns[[n]])
  indices <- Map(function(x, labels, mode) match_rows(x, labels, mode, beyond(labels)), columns, frame$labels, frame$modes)
  names(indices) <- frame$modes
  indices
}

# Modes of files, arrays and models of other programs have no names of their own.
has_default_name <- function(frame) {
  if (is.null(frame$spec)) frame$modes == paste0("mode", seq_along(frame$modes)) else rep(FALSE, length(frame$modes))
}

# Rows that were matched by the position of their mode: if none has a name of the mode, they are probably those of another.
check_some_known <- function(frame, n, rows) {
  labels <- frame$labels[[n]]
  if (length(labels) == 0) return()
  given <- unique(if (is.factor(rows)) levels(rows)[rows] else as.character(rows))
  given <- given[!is.na(given)]
  if (length(given) == 0 || any(given %in% labels)) return()
  bad_argument("none of the ", length(given), " labels of mode ", frame$modes[n], " occur in the model; they are ",
    enumerate(given), ", but its rows are such as ", enumerate(labels), ". Columns without the names of modes are taken in ",
    "the order of the modes")
}

# A vector per mode. The attribute "by_position" has the modes whose columns have other names.
frame_columns <- function(frame, data) {
  order <- length(frame$modes)
  if (is.matrix(data)) {
    if (ncol(data) != order) {
      bad_argument("the matrix of cells has ", ncol(data), " columns, but there are ", order, " modes")
    }
    columns <- if (all(frame$modes %in% colnames(data))) frame$modes else seq_len(order)
    return(lapply(columns, function(n) data[, n]))
  }
  if (!is.list(data)) bad_argument("cells are given as a data frame, a list, a matrix of indices or a coo_tensor")
  if (!is.null(frame$spec) && !is.null(names(data))) {
    needed <- intersect(unlist(lapply(frame$spec$terms, all.vars)), frame$spec$columns)
    check_unique(names(data)[names(data) %in% needed])
    missing <- setdiff(needed, names(data))
    if (length(missing) > 0) bad_argument("the data has no column ", enumerate(missing))
    return(lapply(frame$spec$terms, evaluate_expression, data, frame$spec$environment))
  }
  if (is.null(names(data))) {
    if (length(data) < order) bad_argument("the list of cells has ", length(data), " vectors, but there are ", order, " modes")
    return(data[seq_len(order)])
  }
  check_unique(names(data)[names(data) %in% frame$modes])
  # A mode without a name of its own has the column at its place, unless another mode has it by name.
  places <- match(frame$modes, names(data))
  unnamed <- which(is.na(places) & has_default_name(frame))
  places[unnamed] <- ifelse(unnamed <= length(data) & !unnamed %in% places, unnamed, NA)
  if (anyNA(places)) bad_argument("the data has no column ", enumerate(frame$modes[is.na(places)]))
  structure(as.list(data)[places], by_position = unnamed)
}

# A handle of entries whose rows are those of `frame`: for tests, validation and evaluation.
frame_tensor <- function(frame, data, argument) {
  if (is.character(data)) data <- open_coo(data)
  if (inherits(data, "coo_tensor")) return(aligned_handle(frame, data))
  if (!is.data.frame(data)) bad_argument(argument, " must be a data frame, a coo_tensor or a path")
  if (nrow(data) == 0) bad_argument(argument, " has no entries")
  values <- frame_values(frame, data)
  indices <- frame_indices(frame, data)
  new_coo(indices, numeric_values(values))
}

frame_values <- function(frame, data) {
  if (!is.null(frame$spec$response)) {
    missing <- setdiff(all.vars(frame$spec$response), names(data))
    if (length(missing) > 0) bad_argument("the data has no column ", enumerate(missing))
    return(evaluate_expression(frame$spec$response, data, frame$spec$environment))
  }
  others <- setdiff(names(data), frame$modes)
  if (length(others) == 0) bad_argument("the data has no column of values")
  data[[others[length(others)]]]
}

# The entries of a coo_tensor with the row numbers of `frame`; the same handle if they are the same.
aligned_handle <- function(frame, tensor) {
  if (length(tensor$modes) != length(frame$modes)) {
    bad_argument("the entries have ", length(tensor$modes), " modes, but there are ", length(frame$modes))
  }
  same <- mapply(identical, tensor$labels, frame$labels)
  if (all(same | vapply(tensor$labels, is.null, NA))) return(tensor$handle)
  indices <- lapply(seq_along(frame$modes), function(n) {
    index <- .Call(r_coo_indices, tensor$handle, n)
    if (same[n] || is.null(tensor$labels[[n]])) return(index)
    if (tensor$modes[n] != frame$modes[n]) check_some_known(frame, n, tensor$labels[[n]])
    match_rows(tensor$labels[[n]][index], frame$labels[[n]], frame$modes[n], beyond(frame$labels[[n]]))
  })
  names(indices) <- frame$modes
  new_coo(indices, .Call(r_coo_values, tensor$handle), weights = .Call(r_coo_weights, tensor$handle))
}
