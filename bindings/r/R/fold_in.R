fold_in <- function(object, mode, newdata = NULL, matrices = NULL, replace = FALSE, threads = 0) {
  check_model(object)
  number <- mode_number(object, mode)
  if (is.null(newdata) && length(matrices) == 0) bad_argument("give newdata or matrices, with the entries of the new rows")
  matrices <- fold_in_matrices(object, number, matrices)
  frame <- object
  entries <- if (!is.null(newdata)) frame_entries(object, newdata, "newdata", number)
  tensor <- entries$handle
  if (!is.null(tensor)) frame$labels <- entries$names
  if (!is.null(tensor)) check_entries(frame, number, tensor)
  maps <- list()
  for (name in names(matrices)) {
    known <- rows_of("the model", frame$labels[[number]], model_info(object)$modes$dim[number])
    found <- match_matrix(known, matrices[[name]], object$modes[number], name, NULL)
    maps[[name]] <- found$maps
    frame$labels[number] <- list(found$names)
  }
  handles <- lapply(names(matrices), function(name) {
    matrix_handle(matrices[[name]], maps[[name]], frame$labels[[number]], object$modes[number], name)
  })
  check_flag(replace, "replace")
  threads <- check_count(threads, "threads")
  folded <- with_row_names(frame, number, {
    .Call(r_fold_in, object$handle, number, tensor, handles, match(names(matrices), names(object$columns)), replace, threads)
  })
  result <- new_model(folded$handle, frame$modes, frame$labels, frame$spec, frame$columns)
  result$call <- object$call
  result$data <- object$data
  result$added <- folded$added
  result$replaced <- folded$replaced
  result
}

# Where the library rejects a row that the model has, the error names the row and the argument that replaces it.
with_row_names <- function(frame, number, fold) {
  tryCatch(fold, s3cmtf_BAD_ARGUMENT = function(condition) {
    pattern <- "^row ([0-9]+) of mode [0-9]+ is in the model already, from ([0-9]+) entries.*"
    if (!grepl(pattern, conditionMessage(condition))) stop(condition)
    row <- name_rows(frame$labels[[number]], as.numeric(sub(pattern, "\\1", conditionMessage(condition))))
    bad_argument("row ", row, " of mode ", frame$modes[number], " is in the model already, from ",
      sub(pattern, "\\2", conditionMessage(condition)), " entries; leave it out, or replace it with replace = TRUE and all ",
      "its entries")
  })
}

# New rows of a mode with names must have names. Row numbers of other modes that the model does not have count as the mean row.
check_entries <- function(frame, number, handle) {
  labels <- frame$labels[[number]]
  last <- max(.Call(r_coo_indices, handle, number))
  if (!is.null(labels) && last > length(labels)) {
    bad_argument("row ", last, " of mode ", frame$modes[number], " has no name, but the ", length(labels),
      " rows of the mode have; give the new rows by name")
  }
  sizes <- model_info(frame)$modes$dim
  for (n in setdiff(which(lengths(frame$labels) == 0), number)) {
    unknown <- sum(.Call(r_coo_indices, handle, n) > sizes[n])
    if (unknown == 0) next
    signal_note("warning", paste0("in ", unknown, if (unknown == 1) " entry" else " entries", " the row of mode ",
      frame$modes[n], " is not in the model and counts as the mean row; the rows of the mode are 1 to ", sizes[n]))
  }
}

# Matrices by the names of the model's matrices, with columns in the order of the fit. New columns are left out.
fold_in_matrices <- function(object, number, matrices) {
  if (length(matrices) == 0) return(list())
  if (!is.list(matrices) || is.object(matrices) || is.null(names(matrices))) {
    bad_argument("matrices must be a list with the names of the model's matrices: ",
      paste(names(object$columns), collapse = ", "))
  }
  info <- model_info(object)$matrices
  kinds <- matrix_kinds[info$kind + 1]
  for (name in names(matrices)) {
    i <- matrix_number(object, name)
    if (info$mode[i] != number) {
      bad_argument("matrix ", name, " describes the rows of mode ", object$modes[info$mode[i]], ", not of mode ",
        object$modes[number])
    }
    if (kinds[i] == "graph") bad_argument("matrix ", name, " is a graph, which cannot describe new rows; fit the model again")
    x <- matrices[[name]]
    part <- unclass(if (inherits(x, "s3cmtf_coupled")) x else coupled(matrix_tensor(x, kinds[i], name), kind = kinds[i]))
    part$tensor <- known_columns(part$tensor, object$columns[[i]], name)
    part$mode <- number
    matrices[[name]] <- part
  }
  matrices
}

known_columns <- function(tensor, columns, name) {
  what <- paste("columns of matrix", name)
  map <- match_names(rows_of("the model", columns), rows_of("the new matrix", tensor$labels[[2]]), what, NULL)$rows
  if (is.null(map)) return(tensor)
  column <- map[.Call(r_coo_indices, tensor$handle, 2)]
  keep <- is.null(columns) | column <= length(columns)
  indices <- list(row = .Call(r_coo_indices, tensor$handle, 1)[keep], column = column[keep])
  dims <- c(dim(tensor)[1], if (is.null(columns)) max(map) else length(columns))
  new_tensor(new_coo(indices, .Call(r_coo_values, tensor$handle)[keep], dims), tensor$modes, list(tensor$labels[[1]], columns))
}
