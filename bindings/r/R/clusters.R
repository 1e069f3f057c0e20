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
    matrix <- if (inherits(x, "s3cmtf_coupled")) x else coupled(matrix_tensor(x, "full", name), kind = "full")
    list(handle = label_handle(object, number, matrix, name), columns = matrix$tensor$labels[[2]])
  }, matrices, names(matrices))
}

# The handle of a label matrix with the rows of the model; others are left out.
label_handle <- function(object, number, matrix, name) {
  mode <- object$modes[number]
  size <- model_info(object)$modes$dim[number]
  tensor <- matrix$tensor
  check_matrix_rows(tensor, size, mode, name)
  # Names of levels without entries may follow those of the model.
  known <- object$labels[[number]]
  if (length(known) > size) known <- known[seq_len(size)]
  map <- match_matrix(rows_of("the model", known, size), matrix, mode, name, left_out)$maps[[1]]
  index <- .Call(r_coo_indices, tensor$handle, 1)
  row <- if (is.null(map)) index else map[index]
  if (is.null(map) && max(row) > max(size, length(object$labels[[number]]))) {
    bad_argument("matrix ", name, " has ", max(row), " rows, but mode ", mode, " has ", size,
      "; give it one row for each row of the mode, or row names")
  }
  keep <- row <= size
  indices <- list(row = row[keep], column = .Call(r_coo_indices, tensor$handle, 2)[keep])
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
