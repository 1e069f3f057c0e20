recommend <- function(object, mode, given = list(), n = 10, exclude = TRUE, only = NULL, not = NULL, quantile = NULL,
                      threads = 0) {
  check_model(object)
  number <- mode_number(object, mode)
  n <- list_length(object, number, n, only)
  queries <- given_rows(object, number, given)
  by <- if (length(given) > 0) mode_number(object, names(given)[1]) else number
  excluded <- exclude_handle(object, exclude, length(given) > 0)
  candidates <- function(rows) if (is.null(rows)) NULL else as.double(find_rows(object, number, rows))
  found <- .Call(
    r_recommend, object$handle, number, queries, n, if (is.null(quantile)) 0 else check_fraction(quantile, "quantile"),
    excluded, by, candidates(only), candidates(not), check_count(threads, "threads")
  )
  query <- rep(seq_along(found$counts), found$counts)
  columns <- lapply(which(!vapply(queries, is.null, NA)), function(m) name_rows(object$labels[[m]], queries[[m]])[query])
  names(columns) <- object$modes[!vapply(queries, is.null, NA)]
  columns$rank <- sequence(found$counts)
  columns[[object$modes[number]]] <- name_rows(object$labels[[number]], found$rows)
  columns$score <- found$scores
  as.data.frame(columns, stringsAsFactors = FALSE, optional = TRUE)
}

# The length of lists: no list is longer than the number of rows.
list_length <- function(object, number, n, only = NULL) {
  min(check_count(n, "n", 1), max(model_info(object)$modes$rows[number], length(only)))
}

# One index vector per mode, or NULL for modes that are averaged over. Single rows are repeated.
given_rows <- function(object, number, given) {
  queries <- stats::setNames(vector("list", length(object$modes)), object$modes)
  if (length(given) == 0) return(queries)
  if (!is.list(given) || is.null(names(given))) {
    bad_argument("given must be a list named by mode, such as list(", object$modes[1], " = 1)")
  }
  if (anyDuplicated(names(given))) bad_argument("mode ", names(given)[anyDuplicated(names(given))], " is given twice")
  count <- max(lengths(given))
  for (name in names(given)) {
    m <- mode_number(object, name, "given")
    if (m == number) bad_argument("mode ", name, " is the mode whose rows are wanted and cannot be given")
    if (!length(given[[name]]) %in% c(1, count)) {
      bad_argument("mode ", name, " has ", length(given[[name]]), " given rows, another mode has ", count)
    }
    queries[[m]] <- rep_len(find_fitted_rows(object, m, given[[name]]), count)
  }
  queries
}

exclude_handle <- function(object, exclude, has_query) {
  if (identical(exclude, FALSE) || !has_query || is.data.frame(exclude) && nrow(exclude) == 0) return(NULL)
  if (!isTRUE(exclude)) return(frame_tensor(object, exclude, "exclude"))
  if (is.null(object$data)) {
    bad_argument("the model has no training data; give exclude, the entries whose rows are left out, or exclude = FALSE")
  }
  object$data$handle
}

similar <- function(object, mode, rows, n = 10, threads = 0) {
  check_model(object)
  number <- mode_number(object, mode)
  labels <- object$labels[[number]]
  indices <- find_fitted_rows(object, number, rows)
  found <- .Call(r_similar, object$handle, number, indices, list_length(object, number, n), check_count(threads, "threads"))
  query <- rep(seq_along(found$counts), found$counts)
  columns <- list(name_rows(labels, indices)[query], rank = sequence(found$counts), similar = name_rows(labels, found$rows),
    cosine = found$scores)
  names(columns)[1] <- object$modes[number]
  as.data.frame(columns, stringsAsFactors = FALSE, optional = TRUE)
}
