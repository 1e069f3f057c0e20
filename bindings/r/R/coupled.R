matrix_kinds <- c("observed", "graph", "full", "sampled", "auto")

coupled <- function(x, kind = c("auto", "observed", "full", "sampled", "graph"), weight = NULL, penalty = NULL, zeros = 5,
                    ...) {
  kind <- check_choice(kind)
  if (!is.null(weight) && check_number(weight, "weight") == 0) bad_argument("weight must be above 0")
  if (!is.null(penalty)) check_number(penalty, "penalty")
  check_count(zeros, "zeros", 1)
  variable <- substitute(x)
  tensor <- matrix_tensor(x, kind, if (is.name(variable)) as.character(variable), ...)
  if (length(tensor$modes) != 2) bad_argument("a coupled matrix has 2 modes, but x has ", length(tensor$modes))
  structure(list(tensor = tensor, kind = kind, weight = weight, penalty = penalty, zeros = zeros), class = "s3cmtf_coupled")
}

# The entries of a matrix. Errors begin with its name, if that is not NULL.
matrix_tensor <- function(x, kind, name, ...) {
  tryCatch(matrix_entries(x, kind, ...), s3cmtf_BAD_ARGUMENT = function(condition) {
    bad_argument(if (!is.null(name)) paste0("matrix ", name, ": "), conditionMessage(condition))
  })
}

matrix_entries <- function(x, kind, ...) {
  # A data frame of two columns lists cells with the value 1.
  if (is.data.frame(x) && length(x) == 2) return(as_coo_tensor(x, value = NULL, ...))
  if (!is.matrix(x)) return(as_coo_tensor(x, ...))
  if (all(is.na(x))) bad_argument("the matrix has no known cell")
  # Cells that are 0 are listed only if unlisted cells are not zeros.
  if (kind %in% c("full", "sampled", "graph")) as_coo_tensor(x, drop_zeros = TRUE, ...) else as_coo_tensor(x, ...)
}

print.s3cmtf_coupled <- function(x, ...) {
  cat("coupled matrix, kind ", x$kind, if (!is.null(x$weight)) paste0(", weight ", format(x$weight)), "\n", sep = "")
  print(x$tensor)
  invisible(x)
}

# The matrices of a fit in order, with the modes they belong to. `matrices` is a list named by mode; several matrices of a
# mode are separate elements or a list.
flatten_matrices <- function(frame, matrices) {
  if (length(matrices) == 0) return(list())
  if (is.data.frame(matrices) || !is.list(matrices) || is.object(matrices) || !all(nzchar(names(matrices))) ||
    is.null(names(matrices))) {
    bad_argument("matrices must be a list named by mode, such as list(", frame$modes[1], " = m)")
  }
  flat <- list()
  for (i in seq_along(matrices)) {
    mode <- mode_number(frame, names(matrices)[i], "matrices")
    parts <- matrices[[i]]
    if (!is.list(parts) || is.object(parts)) parts <- list(parts)
    for (part in parts) {
      if (!inherits(part, "s3cmtf_coupled")) part <- coupled(matrix_tensor(part, "auto", names(matrices)[i]))
      flat[[length(flat) + 1]] <- c(unclass(part), list(mode = mode))
    }
  }
  names(flat) <- matrix_names(frame$modes, vapply(flat, `[[`, 0L, "mode"))
  flat
}

# Names of matrices: those of their modes, film and film.1 for two of mode film.
matrix_names <- function(modes, numbers) make.unique(modes[numbers], sep = ".")

# Matches the rows of a matrix, and the columns of a graph, with those of a mode. Returns the row of the mode for each row
# (`maps`, also for each column of a graph; NULL for row numbers) and the names of the mode.
match_matrix <- function(known, matrix, mode, name, fate) {
  sides <- if (matrix$kind == "graph") 1:2 else 1
  labels <- matrix$tensor$labels[sides]
  if (length(unique(lengths(labels) > 0)) > 1) {
    bad_argument("graph ", name, " has names of its rows or of its columns only; give both, or none")
  }
  names <- unique(unlist(labels))
  if (!is.null(names)) attr(names, "fault") <- unlist(lapply(labels, attr, "fault"))[1]
  used <- if (is.null(names)) 0 else vapply(sides, function(side) max(0, .Call(r_coo_indices, matrix$tensor$handle, side)), 0)
  found <- match_names(known, rows_of(paste("matrix", name), names, max(used)), paste("mode", mode), fate)
  maps <- lapply(labels, function(of) {
    own <- if (!is.null(of)) match(of, names)
    if (is.null(found$rows)) own else found$rows[own]
  })
  list(maps = maps, names = found$names)
}

# The handle of a matrix with the rows of the mode, whose names are `labels`; it has at least `size` rows.
matrix_handle <- function(matrix, maps, labels, mode, name, size = 0) {
  tensor <- matrix$tensor
  dims <- dim(tensor)
  if (is.null(maps[[1]]) && !is.null(labels) && dims[1] > length(labels)) {
    bad_argument("matrix ", name, " has ", dims[1], " rows without names, but mode ", mode, " has ", length(labels),
      " rows; give the matrix row names, or one row for each row of the mode")
  }
  sides <- seq_along(maps)
  maps <- Map(function(map, rows) if (is.null(map)) seq_len(rows) else map, maps, dims[sides])
  unchanged <- vapply(sides, function(side) identical(maps[[side]], seq_len(dims[side])), NA)
  rows <- max(size, if (is.null(labels)) c(unlist(maps), dims[1]) else length(labels))
  if (all(unchanged) && rows == dims[1]) return(tensor$handle)
  indices <- lapply(1:2, function(side) {
    index <- .Call(r_coo_indices, tensor$handle, side)
    if (side %in% sides) maps[[side]][index] else index
  })
  names(indices) <- c(mode, tensor$modes[2])
  new_dims <- if (matrix$kind == "graph") c(rows, rows) else c(rows, dims[2])
  new_coo(indices, .Call(r_coo_values, tensor$handle), new_dims, .Call(r_coo_weights, tensor$handle))
}

# An error if a matrix without row names has fewer rows than its mode, unless its size is only that of its largest index.
check_matrix_rows <- function(tensor, rows, mode, name) {
  given <- dim(tensor)[1]
  if (!tensor$sized || given >= rows || !is.null(tensor$labels[[1]])) return()
  bad_argument("matrix ", name, " has ", given, " rows, but mode ", mode, " has ", rows,
    "; give it one row for each row of the mode, or row names")
}

# Matrices as the C code expects them (`prepared`), and the names of the modes with those of rows that only matrices have.
prepare_matrices <- function(frame, matrices) {
  sizes <- tensor_info(frame)$dims
  labels <- frame$labels
  maps <- list()
  for (name in names(matrices)) {
    matrix <- matrices[[name]]
    n <- matrix$mode
    check_matrix_rows(matrix$tensor, sizes[n], frame$modes[n], name)
    found <- match_matrix(rows_of("the tensor", labels[[n]], sizes[n]), matrix, frame$modes[n], name, appended)
    maps[[name]] <- found$maps
    labels[n] <- list(found$names)
  }
  prepared <- lapply(names(matrices), function(name) {
    matrix <- matrices[[name]]
    n <- matrix$mode
    list(
      n,
      matrix_handle(matrix, maps[[name]], labels[[n]], frame$modes[n], name, if (is.null(maps[[name]][[1]])) 0 else sizes[n]),
      match(matrix$kind, matrix_kinds) - 1L,
      if (matrix$kind == "sampled") matrix$zeros else 0,
      if (is.null(matrix$weight)) 0 else matrix$weight,
      if (is.null(matrix$penalty)) NA_real_ else matrix$penalty
    )
  })
  list(prepared = prepared, labels = labels)
}
