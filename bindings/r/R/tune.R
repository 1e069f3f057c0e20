s3cmtf_tune <- function(x, ...) UseMethod("s3cmtf_tune")

s3cmtf_tune.formula <- function(x, data = NULL, matrices = NULL, weights = NULL, ..., valid = 0.1, ranges = NULL,
                                trials = 200, rungs = 3, fit_threads = 1, options = NULL, checkpoint = NULL,
                                resume = NULL, progress = getOption("s3cmtf.progress", interactive())) {
  tensor <- tensor_from_formula(x, data, substitute(weights))
  tune_tensor(tensor, matrices, prepare_options(options, list(...)), valid, ranges, trials, rungs, fit_threads, checkpoint,
    resume, progress)
}

s3cmtf_tune.default <- function(x, matrices = NULL, weights = NULL, ..., valid = 0.1, ranges = NULL, trials = 200,
                                rungs = 3, fit_threads = 1, options = NULL, checkpoint = NULL, resume = NULL,
                                progress = getOption("s3cmtf.progress", interactive())) {
  tensor <- weighted_tensor(as_coo_tensor(x), weights)
  tune_tensor(tensor, matrices, prepare_options(options, list(...)), valid, ranges, trials, rungs, fit_threads, checkpoint,
    resume, progress)
}

tune_tensor <- function(tensor, matrices, options, valid, ranges, trials, rungs, fit_threads, checkpoint, resume, progress) {
  matrices <- flatten_matrices(tensor, matrices)
  frame <- tensor
  coupled <- prepare_matrices(tensor, matrices)
  frame$labels <- coupled$labels
  if (length(ranges) > 0 && is.null(names(ranges))) bad_argument("ranges are given by name, such as list(rank = c(8, 16))")
  if (anyDuplicated(names(ranges))) bad_argument("option ", names(ranges)[anyDuplicated(names(ranges))], " has two ranges")
  fraction <- if (is.numeric(valid)) check_fraction(valid, "valid") else 0
  entries <- if (is.numeric(valid)) NULL else frame_tensor(frame, valid, "valid")
  size <- list(
    check_count(trials, "trials", 1), check_count(rungs, "rungs", 1), check_count(fit_threads, "fit_threads", 1), fraction
  )
  reporter <- tune_reporter(progress)
  on.exit(reporter$finish())
  found <- .Call(
    r_tune, tensor$handle, coupled$prepared, options$preset, options$names, options$values, size, entries,
    as.character(names(ranges)),
    vapply(names(ranges), function(name) option_text(ranges[[name]], name), "", USE.NAMES = FALSE),
    check_path_or_null(checkpoint, "checkpoint"), check_path_or_null(resume, "resume"), reporter$report
  )
  options <- lapply(found$options, function(lines) typed_options(parse_lines(lines)))
  found$options <- NULL
  structure(
    list(trials = as.data.frame(found, stringsAsFactors = FALSE), options = options, best = options[[1]]),
    class = "s3cmtf_tune"
  )
}

print.s3cmtf_tune <- function(x, n = 5, ...) {
  failed <- sum(!is.na(x$trials$error))
  default <- x$trials$valid_rmse[x$trials$trial == 0]
  cat(nrow(x$trials), " trials", if (failed > 0) paste0(", ", failed, " failed"),
    "; trial 0 has the given options, validation RMSE ", format(default, digits = 4), "\n", sep = "")
  print(head(x$trials[c("trial", "rungs", "epochs", "valid_rmse", "seconds")], n), row.names = FALSE, digits = 4)
  best <- Map(option_text, x$best, names(x$best))
  cat("best options: ", paste(names(best), best, sep = "=", collapse = " "), "\n", sep = "")
  invisible(x)
}
