fold_in <- function(object, mode, newdata = NULL, matrices = NULL, replace = FALSE, threads = 0) {
  check_model(object)
  number <- mode_number(object, mode)
  if (is.null(newdata) && length(matrices) == 0) bad_argument("give newdata or matrices, with the entries of the new rows")
  matrices <- fold_in_matrices(object, number, matrices)
  frame <- object
  if (!is.null(frame$labels[[number]])) {
    found <- c(new_rows(object, number, newdata), unlist(lapply(matrices, function(matrix) matrix$tensor$labels[[1]])))
    frame$labels[[number]] <- unique(c(frame$labels[[number]], found))
  }
  handles <- lapply(names(matrices), function(name) {
    matrix_handle(frame, matrices[[name]], frame$labels[[number]], name)
  })
  tensor <- if (is.null(newdata)) NULL else frame_tensor(frame, newdata, "newdata")
  folded <- .Call(r_fold_in, object$handle, number, tensor, handles, match(names(matrices), names(object$columns)),
    check_flag(replace, "replace"), check_count(threads, "threads"))
  result <- new_model(folded$handle, frame$modes, frame$labels, frame$spec, frame$columns)
  result$call <- object$call
  result$data <- object$data
  result$added <- folded$added
  result$replaced <- folded$replaced
  result
}

# Names of rows of the mode in the entries.
new_rows <- function(object, number, newdata) {
  if (is.null(newdata)) return(NULL)
  if (inherits(newdata, "coo_tensor")) return(newdata$labels[[number]])
  if (!is.data.frame(newdata)) return(NULL)
  rows <- frame_columns(object, newdata)[[number]]
  rows <- as.character(if (is.factor(rows)) droplevels(rows) else rows)
  unique(rows[!is.na(rows)])
}

# Matrices by the names of the model's matrices, with columns in the order of the fit. New columns are left out.
fold_in_matrices <- function(object, number, matrices) {
  if (length(matrices) == 0) return(list())
  if (!is.list(matrices) || is.object(matrices) || is.null(names(matrices))) {
    bad_argument("matrices must be a list with the names of the model's matrices: ",
      paste(names(object$columns), collapse = ", "))
  }
  kinds <- matrix_kinds[model_info(object)$matrices$kind + 1]
  for (name in names(matrices)) {
    i <- matrix_number(object, name)
    x <- matrices[[name]]
    part <- unclass(if (inherits(x, "s3cmtf_coupled")) x else coupled(x, kind = kinds[i]))
    part$tensor <- known_columns(part$tensor, object$columns[[i]])
    part$mode <- number
    matrices[[name]] <- part
  }
  matrices
}

known_columns <- function(tensor, columns) {
  if (is.null(columns) || is.null(tensor$labels[[2]]) || identical(columns, tensor$labels[[2]])) return(tensor)
  column <- match(tensor$labels[[2]], columns)[.Call(r_coo_indices, tensor$handle, 2)]
  keep <- !is.na(column)
  indices <- list(row = .Call(r_coo_indices, tensor$handle, 1)[keep], column = column[keep])
  dims <- c(dim(tensor)[1], length(columns))
  new_tensor(new_coo(indices, .Call(r_coo_values, tensor$handle)[keep], dims), tensor$modes,
    list(tensor$labels[[1]], columns))
}
