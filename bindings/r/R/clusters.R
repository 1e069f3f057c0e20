clusters <- function(object, mode, k = NULL, max_k = NULL, space = c("predictions", "columns"), matrices = NULL, n = 10,
                     labels = 10, min_entries = 1, restarts = 10, references = 10, curve_rows = 20000, seed = 0,
                     threads = 0) {
  check_model(object)
  number <- mode_number(object, mode)
  space <- check_choice(space)
  described <- label_matrices(object, number, matrices)
  optional <- function(x, name) if (is.null(x)) 0 else check_count(x, name, 1)
  numbers <- c(
    optional(k, "k"), optional(max_k, "max_k"), check_count(restarts, "restarts", 1),
    check_count(references, "references", 1), check_count(curve_rows, "curve_rows", 1),
    check_count(min_entries, "min_entries", 1), match(space, c("predictions", "columns")) - 1, check_count(n, "n", 1),
    check_count(labels, "labels", 1), check_count(seed, "seed"), check_count(threads, "threads")
  )
  found <- .Call(r_clusters, object$handle, number, numbers, lapply(described, `[[`, "handle"))
  rows <- object$labels[[number]]
  members <- as.data.frame(found$members)
  members$row <- name_rows(rows, members$row)
  over <- as.data.frame(found$labels)
  for (i in seq_along(described)) {
    here <- found$labels$matrix == i
    over$column[here] <- name_rows(described[[i]]$columns, found$labels$column[here])
  }
  over$matrix <- names(described)[found$labels$matrix]
  has_curve <- length(found$gap$k) > 0
  assignment <- as.integer(found$assignment$cluster)
  names(assignment) <- name_rows(rows, found$assignment$row)
  structure(
    list(mode = object$modes[number], cluster = assignment, size = found$sizes$rows, radius = found$sizes$radius,
      centres = found$centres, explained_variance = found$explained_variance, members = members, labels = over,
      information = stats::setNames(found$information, names(described)),
      gap = if (has_curve) as.data.frame(found$gap), gap_choice = if (has_curve) found$gap_choice,
      gap_settled = if (has_curve) found$gap_settled,
      coordinates = principal_coordinates(object, number, found$assignment$row)),
    class = "s3cmtf_clusters"
  )
}

# Matrices that label clusters: a list of matrices with the rows of the mode, or NULL.
label_matrices <- function(object, number, matrices) {
  if (length(matrices) == 0) return(list())
  if (!is.list(matrices) || is.object(matrices)) matrices <- list(matrices)
  given <- if (is.null(names(matrices))) rep("", length(matrices)) else names(matrices)
  names(matrices) <- make.unique(ifelse(given == "", "matrix", given), sep = ".")
  Map(function(x, name) {
    tensor <- (if (inherits(x, "s3cmtf_coupled")) x else coupled(matrix_tensor(x, "full", name), kind = "full"))$tensor
    list(handle = label_handle(object, number, tensor, name), columns = tensor$labels[[2]])
  }, matrices, names(matrices))
}

# The handle of a label matrix with the rows of the model; others are left out.
label_handle <- function(object, number, tensor, name) {
  mode <- object$modes[number]
  size <- model_info(object)$modes$dim[number]
  rows <- tensor$labels[[1]]
  given <- dim(tensor)[1]
  check_matrix_rows(tensor, size, mode, name)
  if (is.null(rows) && tensor$sized && given > max(size, length(object$labels[[number]]))) {
    bad_argument("matrix ", name, " has ", given, " rows, but mode ", mode, " has ", size,
      "; give it one row for each row of the mode, or row names")
  }
  map <- row_map(rows, given, object$labels[[number]], mode, name)
  index <- .Call(r_coo_indices, tensor$handle, 1)
  is_known <- function(row) !is.na(map[row]) & map[row] <= size
  listed <- if (is.null(rows)) sort(unique(index)) else seq_along(rows)
  unknown <- name_rows(rows, listed[!is_known(listed)])
  if (length(unknown) == length(listed)) {
    bad_argument("none of the ", length(listed), " rows of matrix ", name, " occur in mode ", mode, ", such as ",
      enumerate(unknown), "; its rows are such as ", enumerate(name_rows(object$labels[[number]], seq_len(min(size, 3)))))
  }
  if (length(unknown) > 0) {
    signal_note("unknown_rows", paste0("matrix ", name, ": ", length(unknown), " of ", length(listed),
      " rows are not in mode ", mode, " of the model (", enumerate(unknown), ") and are left out"))
  }
  keep <- is_known(index)
  indices <- list(row = map[index[keep]], column = .Call(r_coo_indices, tensor$handle, 2)[keep])
  new_coo(indices, .Call(r_coo_values, tensor$handle)[keep], c(size, dim(tensor)[2]))
}

# Two principal components of the factor rows, for plots. Columns have the strength of their concept, the root mean square of
# their contribution to predictions.
principal_coordinates <- function(object, number, rows) {
  parts <- .Call(r_model_mode, object$handle, number)
  factor <- parts$factor[match(rows, parts$rows), , drop = FALSE]
  if (nrow(factor) < 2) return(NULL)
  if (ncol(factor) < 2) return(cbind(factor, 0))
  table <- .Call(r_concepts, object$handle, number, 1, 1, numeric(), numeric())$concepts
  strength <- table$strength[order(table$concept)]
  size <- sqrt(colMeans(factor^2))
  prcomp(sweep(factor, 2, ifelse(size > 0, strength / size, 0), `*`), rank. = 2)$x
}

print.s3cmtf_clusters <- function(x, n = 3, ...) {
  cat(format(length(x$cluster), big.mark = ","), " rows of mode ", x$mode, " in ", length(x$size), " clusters, ",
    format(100 * x$explained_variance, digits = 3), "% of the variance is between clusters\n", sep = "")
  for (i in seq_along(x$size)) {
    cat("cluster ", i, ": ", format(x$size[i], big.mark = ","), " rows, radius ", format(x$radius[i], digits = 3), "\n",
      sep = "")
    labels <- head(x$labels[x$labels$cluster == i, ], n)
    if (nrow(labels) > 0) {
      lift <- format(labels$lift, digits = 2, trim = TRUE)
      cat("  ", paste0(labels$column, " (lift ", lift, ")", collapse = ", "), "\n", sep = "")
    }
    members <- head(x$members[x$members$cluster == i, ], n)
    cat("  ", paste(members$row, collapse = ", "), "\n", sep = "")
  }
  invisible(x)
}
