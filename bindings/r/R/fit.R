s3cmtf <- function(x, ...) UseMethod("s3cmtf")

s3cmtf.formula <- function(x, data = NULL, matrices = NULL, weights = NULL, ..., test = NULL, valid = NULL, options = NULL,
                           init = NULL, checkpoint = NULL, resume = NULL, plan = NULL,
                           progress = getOption("s3cmtf.progress", interactive()), keep_data = TRUE) {
  call <- plain_call(match.call())
  tensor <- tensor_from_formula(x, data, substitute(weights))
  fit_tensor(tensor, matrices, prepare_options(options, list(...)), test, valid, init, checkpoint, resume, plan,
    progress, keep_data, call)
}

s3cmtf.default <- function(x, matrices = NULL, weights = NULL, ..., test = NULL, valid = NULL, options = NULL, init = NULL,
                           checkpoint = NULL, resume = NULL, plan = NULL,
                           progress = getOption("s3cmtf.progress", interactive()), keep_data = TRUE) {
  call <- plain_call(match.call())
  tensor <- weighted_tensor(as_coo_tensor(x), weights)
  fit_tensor(tensor, matrices, prepare_options(options, list(...)), test, valid, init, checkpoint, resume, plan,
    progress, keep_data, call)
}

weighted_tensor <- function(tensor, weights) {
  if (is.null(weights)) return(tensor)
  if (!is.numeric(weights)) bad_argument("weights must be numbers, one for each entry")
  tensor$handle <- .Call(r_coo_weighted, tensor$handle, as.double(weights))
  tensor
}

s3cmtf_plan <- function(x, ...) UseMethod("s3cmtf_plan")

s3cmtf_plan.formula <- function(x, data = NULL, matrices = NULL, weights = NULL, ..., valid = NULL, options = NULL,
                                init = NULL) {
  tensor <- tensor_from_formula(x, data, substitute(weights))
  plan_tensor(tensor, matrices, prepare_options(options, list(...)), valid, init)
}

s3cmtf_plan.default <- function(x, matrices = NULL, weights = NULL, ..., valid = NULL, options = NULL, init = NULL) {
  plan_tensor(weighted_tensor(as_coo_tensor(x), weights), matrices, prepare_options(options, list(...)), valid, init)
}

plan_tensor <- function(tensor, matrices, options, valid, init) {
  given <- prepare_fit(tensor, matrices, options, valid, init)
  options <- given$options
  .Call(r_plan, tensor$handle, given$prepared, options$preset, options$names, options$values, given$valid, given$init)
}

model_plan <- function(object) {
  check_model(object)
  plan <- .Call(r_model_plan, object$handle)
  if (plan == "") NULL else plan
}

# What a fit is given: frame (modes, labels, spec and columns of its model), prepared matrices, options, and the handles valid and
# init, which may be NULL.
prepare_fit <- function(tensor, matrices, options, valid, init) {
  matrices <- flatten_matrices(tensor, matrices)
  frame <- tensor
  coupled <- prepare_matrices(tensor, matrices)
  frame$labels <- coupled$labels
  frame$columns <- lapply(matrices, function(matrix) if (matrix$kind != "graph") matrix$tensor$labels[[2]])
  if (is.numeric(valid)) {
    options$names <- c(options$names, "valid_fraction")
    options$values <- c(options$values, option_text(valid, "valid"))
    valid <- NULL
  }
  list(
    frame = frame, prepared = coupled$prepared, options = options,
    valid = if (is.null(valid)) NULL else frame_tensor(frame, valid, "valid"),
    init = if (is.null(init)) NULL else init_handle(frame, init)
  )
}

fit_tensor <- function(tensor, matrices, options, test, valid, init, checkpoint, resume, plan, progress, keep_data, call) {
  check_flag(keep_data, "keep_data")
  given <- prepare_fit(tensor, matrices, options, valid, init)
  frame <- given$frame
  reporter <- fit_reporter(progress)
  on.exit(reporter$finish())
  if (!is.null(check_path_or_null(checkpoint, "checkpoint"))) {
    before <- digest_or_null(checkpoint)
    on.exit(name_checkpoint(frame, checkpoint, before), add = TRUE)
  }
  handle <- .Call(
    r_fit, tensor$handle, given$prepared, given$options$preset, given$options$names, given$options$values,
    if (is.null(test)) NULL else frame_tensor(frame, test, "test"), given$valid, given$init, checkpoint,
    check_path_or_null(resume, "resume"), if (is.null(plan)) NULL else check_string(plan, "plan"), reporter$report
  )
  model <- new_model(handle, frame$modes, frame$labels, frame$spec, frame$columns)
  model$call <- call
  if (keep_data) model$data <- tensor
  report_notes(model, quiet = identical(progress, FALSE))
  report_unused_rows(model)
  model
}

# s3cmtf(rating ~ user + film, ...) instead of s3cmtf.formula(x = rating ~ user + film, ...)
plain_call <- function(call) {
  call[[1]] <- as.name("s3cmtf")
  names(call)[2] <- ""
  call
}

# The rows of the model to start from are those of the new fit if its names begin in the same way.
init_handle <- function(frame, init) {
  check_model(init)
  if (length(init$modes) != length(frame$modes)) {
    bad_argument("init has ", length(init$modes), " modes, but there are ", length(frame$modes))
  }
  for (n in seq_along(frame$modes)) {
    matched <- match_names(rows_of("the tensor", frame$labels[[n]]), rows_of("init", init$labels[[n]]), title(frame, n), NULL)
    if (!is.null(matched$rows) && !identical(matched$rows, seq_along(matched$rows))) {
      bad_argument("mode ", frame$modes[n],
        " of init has other rows; use factors whose levels begin with those of the model")
    }
  }
  init$handle
}

# Warnings of the fit, and unless `quiet` its other events as messages.
report_notes <- function(model, quiet) {
  for (line in strsplit(.Call(r_model_record, model$handle), "\n", fixed = TRUE)[[1]]) {
    parts <- regmatches(line, regexec("^note=[0-9]+ ([^ ]+) (.*)$", line))[[1]]
    if (length(parts) == 3 && (!quiet || parts[2] == "warning")) signal_note(parts[2], parts[3])
  }
}

report_unused_rows <- function(model) {
  rows <- model_info(model)$modes$rows
  named <- lengths(model$labels)
  for (n in which(named > rows)) {
    unused <- setdiff(seq_len(named[n]), .Call(r_model_mode, model$handle, n)$rows)
    signal_note("unused_rows", paste0(
      "mode ", model$modes[n], ": ", length(unused), " of ", named[n], " rows have no entries (",
      enumerate(model$labels[[n]][unused]), "); they are predicted from the mean row. droplevels() removes unused levels"
    ))
  }
}
