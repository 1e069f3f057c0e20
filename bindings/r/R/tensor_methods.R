tensor_info <- function(x) .Call(r_coo_info, x$handle)

dim.coo_tensor <- function(x) {
  dims <- pmax(tensor_info(x)$dims, lengths(x$labels))
  if (all(dims <= .Machine$integer.max)) as.integer(dims) else dims
}

print.coo_tensor <- function(x, ...) {
  if (!.Call(r_handle_is_open, x$handle)) {
    cat("coo_tensor: closed, or restored from a file\n")
    return(invisible(x))
  }
  info <- tensor_info(x)
  cat("coo_tensor: ", format(info$count, big.mark = ","), " entries", if (info$weighted) " with weights", "\n", sep = "")
  cat(sprintf("  %s: %s%s\n", x$modes, format(dim(x), big.mark = ","),
    ifelse(lengths(x$labels) > 0, " rows with names", " rows")), sep = "")
  invisible(x)
}

summary.coo_tensor <- function(object, ...) {
  info <- tensor_info(object)
  summary <- .Call(r_coo_summary, object$handle)
  modes <- data.frame(mode = object$modes, rows = dim(object), rows_with_entries = summary$rows_used)
  summary$rows_used <- NULL
  structure(c(list(entries = info$count, weighted = info$weighted, modes = modes), summary), class = "summary.coo_tensor")
}

print.summary.coo_tensor <- function(x, ...) {
  cat(format(x$entries, big.mark = ","), " entries", if (x$weighted) " with weights", "; values from ", format(x$min), " to ",
    format(x$max), ", mean ", format(x$mean, digits = 4), ", standard deviation ", format(x$standard_deviation, digits = 4),
    "\n", sep = "")
  print(x$modes, row.names = FALSE)
  invisible(x)
}

as.data.frame.coo_tensor <- function(x, row.names = NULL, optional = FALSE, ...) {
  columns <- lapply(seq_along(x$modes), function(n) {
    index <- .Call(r_coo_indices, x$handle, n)
    labels <- x$labels[[n]]
    if (is.null(labels)) index else structure(index, levels = labels, class = "factor")
  })
  names(columns) <- x$modes
  response <- x$spec$response
  value <- if (is.null(response)) "value" else deparse(response)[1]
  columns[[value]] <- .Call(r_coo_values, x$handle)
  columns$weight <- .Call(r_coo_weights, x$handle)
  as.data.frame(columns, row.names = row.names, optional = TRUE)
}

close.coo_tensor <- function(con, ...) invisible(.Call(r_handle_close, con$handle))
