# A model is a list: handle (external pointer), modes, labels and spec as in coo_tensor, columns (names of the columns of
# each coupled matrix), and after a fit call and data.
new_model <- function(handle, modes, labels, spec, columns) {
  structure(list(handle = handle, modes = modes, labels = labels, spec = spec, columns = columns), class = "s3cmtf")
}

check_model <- function(x) {
  if (!inherits(x, "s3cmtf")) {
    bad_argument("an object of class ", class(x)[1], " is not a model; see s3cmtf() and load_model()")
  }
}

model_info <- function(x) .Call(r_model_info, x$handle)

matrix_number <- function(model, matrix) {
  number <- if (is.character(matrix)) match(matrix, names(model$columns)) else matrix
  if (length(number) != 1 || is.na(number) || !number %in% seq_along(model$columns)) {
    known <- if (length(model$columns) > 0) paste0("its matrices are ", paste(names(model$columns), collapse = ", "))
    bad_argument("the model has no matrix ", matrix, "; ", if (is.null(known)) "it has no matrices" else known)
  }
  as.integer(number)
}

factors <- function(object, mode = NULL) {
  check_model(object)
  if (!is.null(mode)) return(named_factor(object, mode_number(object, mode))$factor)
  all <- lapply(seq_along(object$modes), function(n) named_factor(object, n)$factor)
  names(all) <- object$modes
  all
}

named_factor <- function(model, number) {
  parts <- .Call(r_model_mode, model$handle, number)
  rows <- as.character(name_rows(model$labels[[number]], parts$rows))
  rownames(parts$factor) <- rows
  names(parts$biases) <- rows
  parts
}

core_tensor <- function(object) {
  check_model(object)
  core <- .Call(r_model_core, object$handle)
  info <- model_info(object)
  if (info$model == "cp") core else array(core, dim = info$modes$rank)
}

coef.s3cmtf <- function(object, ...) {
  info <- model_info(object)
  modes <- lapply(seq_along(object$modes), function(n) named_factor(object, n))
  names(modes) <- object$modes
  matrices <- lapply(seq_along(object$columns), function(i) {
    if (info$matrices$kind[i] == match("graph", matrix_kinds) - 1) return(NULL)
    parts <- .Call(r_model_matrix, object$handle, i)
    columns <- as.character(name_rows(object$columns[[i]], parts$columns))
    rownames(parts$factor) <- columns
    names(parts$offsets) <- columns
    parts[c("factor", "offsets")]
  })
  names(matrices) <- names(object$columns)
  list(
    mean = info$mean, biases = lapply(modes, `[[`, "biases"), factors = lapply(modes, `[[`, "factor"),
    core = core_tensor(object), matrices = matrices
  )
}

model_options <- function(object) {
  check_model(object)
  options <- .Call(r_model_options, object$handle)
  typed_options(stats::setNames(as.list(options$value), options$name))
}

close.s3cmtf <- function(con, ...) invisible(.Call(r_handle_close, con$handle))

print.s3cmtf <- function(x, ...) {
  if (!.Call(r_handle_is_open, x$handle)) {
    cat("s3cmtf model: closed, or restored from a file without its data; see save_model()\n")
    return(invisible(x))
  }
  info <- model_info(x)
  cat("s3cmtf model, ", if (info$model == "cp") "CP" else "Tucker",
    if (info$samples > 0) paste0(", ", info$samples, " posterior samples"), "\n", sep = "")
  rows <- format(info$modes$rows, big.mark = ",")
  cat(sprintf("  %s: %s rows, rank %s\n", format(x$modes), rows, info$modes$rank), sep = "")
  kinds <- matrix_kinds[info$matrices$kind + 1]
  if (length(kinds) > 0) {
    sizes <- ifelse(kinds == "graph", "graph", paste0(info$matrices$columns, " columns, kind ", kinds))
    cat(sprintf("  matrix %s: %s, weight %s\n", names(x$columns), sizes, format(info$matrices$weight)), sep = "")
  }
  record <- parse_lines(.Call(r_model_record, x$handle))
  errors <- c(training = record$train_rmse, validation = record$valid_rmse, test = record$test_rmse)
  errors <- suppressWarnings(vapply(errors, as.numeric, 0))
  errors <- errors[is.finite(errors)]
  if (length(errors) > 0) {
    cat("  RMSE: ", paste(names(errors), format(errors, digits = 4), collapse = ", "), " (epoch ", record$best_epoch, ")\n",
      sep = "")
  }
  invisible(x)
}

summary.s3cmtf <- function(object, ...) {
  info <- model_info(object)
  modes <- data.frame(mode = object$modes, size = pmax(info$modes$dim, lengths(object$labels)), rows = info$modes$rows,
    rank = info$modes$rank)
  matrices <- data.frame(
    matrix = as.character(names(object$columns)), mode = object$modes[info$matrices$mode],
    kind = matrix_kinds[info$matrices$kind + 1], weight = info$matrices$weight, columns = info$matrices$columns
  )
  structure(
    list(call = object$call, model = info$model, samples = info$samples, mean = info$mean, range = c(info$min, info$max),
      modes = modes, matrices = matrices, options = model_options(object),
      record = parse_lines(.Call(r_model_record, object$handle)),
      epochs = as.data.frame(.Call(r_model_epochs, object$handle))),
    class = "summary.s3cmtf"
  )
}

print.summary.s3cmtf <- function(x, ...) {
  if (!is.null(x$call)) cat("Call: ", paste(deparse(x$call), collapse = "\n"), "\n\n", sep = "")
  cat(if (x$model == "cp") "CP" else "Tucker", " model, values from ", format(x$range[1]), " to ", format(x$range[2]),
    if (x$samples > 0) paste0(", ", x$samples, " posterior samples"), "\n", sep = "")
  print(x$modes, row.names = FALSE)
  if (nrow(x$matrices) > 0) {
    cat("\nCoupled matrices:\n")
    print(x$matrices, row.names = FALSE)
  }
  cat("\nFit:\n")
  shown <- x$record[intersect(c("reason", "epochs", "best_epoch", "train_rmse", "valid_rmse", "test_rmse", "seconds"),
    names(x$record))]
  numbers <- suppressWarnings(vapply(shown, as.numeric, 0))
  shown[!is.na(numbers)] <- format(numbers[!is.na(numbers)], digits = 4, drop0trailing = TRUE)
  shown <- shown[is.na(numbers) == (names(shown) == "reason")]
  cat(paste0("  ", format(names(shown)), "  ", unlist(shown), "\n"), sep = "")
  invisible(x)
}
