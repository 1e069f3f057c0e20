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

# The rows of a mode in one input: what messages call the input, the names of the rows or NULL, and their number.
rows_of <- function(source, names, size = 0) list(source = source, names = names, size = size)

title <- function(frame, number) paste("mode", frame$modes[number])

# What becomes of rows that only a later input has.
appended <- "appended to the mode"
unseen <- "unseen: they count as the mean row"
left_out <- "left out"

# Matches the rows of a mode in an input, `given`, with those that are `known`: by name if both sides have names, otherwise by
# number, with a warning if one side has names. Returns `rows`, the row of the mode for each row of the input (NULL: the same
# numbers), and `names`, those that are known and then those that only the input has. Messages begin with `title`. `fate` is
# what becomes of rows that only the input has; NULL if all of them may be new, without a message.
match_names <- function(known, given, title, fate) {
  same <- list(rows = NULL, names = known$names)
  if (is.null(known$names) || is.null(given$names)) {
    if (is.null(known$names) && is.null(given$names)) return(same)
    # Names of dimensions are strings, also those that are row numbers.
    numbers <- suppressWarnings(as.numeric(given$names))
    if (length(numbers) > 0 && all(!is.na(numbers) & numbers >= 1 & numbers < 2^32 & numbers == trunc(numbers))) {
      return(list(rows = numbers, names = NULL))
    }
    sides <- if (is.null(known$names)) list(given, known) else list(known, given)
    signal_note("warning", paste0(title, ": there are names in ", sides[[1]]$source, " and none in ",
      sides[[2]]$source, "; rows are matched by number"))
    return(same)
  }
  if (identical(as.character(known$names), as.character(given$names))) return(same)
  for (side in list(known, given)) {
    fault <- attr(side$names, "fault")
    if (is.null(fault) && length(side$names) < side$size) fault <- paste("row", length(side$names) + 1, "has no name")
    if (!is.null(fault)) {
      bad_argument(title, ": rows of ", known$source, " and ", given$source, " cannot be matched by name, because in ",
        side$source, " ", fault)
    }
  }
  new <- setdiff(given$names, known$names)
  both <- length(given$names) - length(new)
  if (!is.null(fate) && length(new) > 0 && both == 0) {
    bad_argument(title, ": ", known$source, " and ", given$source, " have no name in common; names are such as ",
      known$names[1], " in ", known$source, " and ", new[1], " in ", given$source)
  }
  if (!is.null(fate) && (length(new) > 0 || fate == appended && both < length(known$names))) {
    signal_note("matched_rows", paste0(title, ": rows are matched by name: ", both, " in both ", known$source, " and ",
      given$source, ", ", length(known$names) - both, " only in ", known$source, ", ", length(new), " only in ", given$source,
      if (length(new) > 0) paste0(" (such as ", new[1], "), ", fate)))
  }
  names <- c(known$names, new)
  list(rows = match(given$names, names), names = names)
}

# One index vector per mode for cells that are given as vectors. Names that no row has get the first row beyond the model.
cell_indices <- function(frame, cells) {
  beyond <- pmax(lengths(frame$labels), model_info(frame)$modes$dim) + 1
  indices <- Map(match_rows, frame_columns(frame, cells), frame$labels, frame$modes, beyond)
  names(indices) <- frame$modes
  indices
}

# Modes of files, arrays and models of other programs have no names of their own.
has_default_name <- function(frame) {
  if (is.null(frame$spec)) frame$modes == paste0("mode", seq_along(frame$modes)) else rep(FALSE, length(frame$modes))
}

# A vector per mode.
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
  as.list(data)[places]
}

# Entries whose rows are matched with those of `frame`, for tests, validation, prediction and evaluation: `indices`, one vector
# per mode, `names`, those of the modes and of new rows, and `is_same`, whether all numbers are those of `data`. All rows of the
# mode `new_mode` may be new.
match_entries <- function(frame, data, argument, new_mode = 0) {
  is_tensor <- inherits(data, "coo_tensor")
  if (!is_tensor && !is.data.frame(data)) bad_argument(argument, " must be a data frame, a coo_tensor or a path")
  if (is_tensor && length(data$modes) != length(frame$modes)) {
    bad_argument("the entries have ", length(data$modes), " modes, but there are ", length(frame$modes))
  }
  is_model <- inherits(frame, "s3cmtf")
  source <- if (is_model) "the model" else "the tensor"
  sizes <- if (is_model) model_info(frame)$modes$dim else tensor_info(frame)$dims
  columns <- if (!is_tensor) frame_columns(frame, data)
  found <- lapply(seq_along(frame$modes), function(n) {
    # Numbers in a table are names if the mode has names.
    is_name <- !is_tensor && !is.null(frame$labels[[n]]) && !is.factor(columns[[n]]) && !is.list(columns[[n]])
    if (is_name) check_vector(columns[[n]], paste("the rows of mode", frame$modes[n]))
    given <- if (is_tensor) {
      list(index = .Call(r_coo_indices, data$handle, n), labels = data$labels[[n]])
    } else {
      index_column(if (is_name) as.character(columns[[n]]) else columns[[n]], frame$modes[n])
    }
    used <- if (is.null(given$labels)) 0 else max(0, as.numeric(given$index), na.rm = TRUE)
    side <- rows_of(argument, given$labels, used)
    matched <- match_names(rows_of(source, frame$labels[[n]], sizes[n]), side, title(frame, n), if (n != new_mode) unseen)
    if (!is.null(matched$rows)) given$index <- matched$rows[as.integer(given$index)]
    list(index = given$index, names = matched$names, is_same = is.null(matched$rows))
  })
  list(indices = stats::setNames(lapply(found, `[[`, "index"), frame$modes), names = lapply(found, `[[`, "names"),
    is_same = all(vapply(found, `[[`, NA, "is_same")))
}

# The handle of such entries, and the names of the modes.
frame_entries <- function(frame, data, argument, new_mode = 0) {
  if (is.character(data)) data <- open_coo(data)
  matched <- match_entries(frame, data, argument, new_mode)
  handle <- if (is.data.frame(data)) {
    if (nrow(data) == 0) bad_argument(argument, " has no entries")
    new_coo(matched$indices, numeric_values(frame_values(frame, data)))
  } else if (matched$is_same) {
    data$handle
  } else {
    new_coo(matched$indices, .Call(r_coo_values, data$handle), weights = .Call(r_coo_weights, data$handle))
  }
  list(handle = handle, names = matched$names)
}

frame_tensor <- function(frame, data, argument) frame_entries(frame, data, argument)$handle

frame_values <- function(frame, data) {
  if (!is.null(frame$spec$response)) {
    missing <- setdiff(all.vars(frame$spec$response), names(data))
    if (length(missing) > 0) bad_argument("the data has no column ", enumerate(missing))
    return(evaluate_expression(frame$spec$response, data, frame$spec$environment))
  }
  others <- setdiff(names(data), frame$modes)
  if (length(others) == 0) bad_argument("the data has no column of values")
  data[[value_column(data, others)]]
}
