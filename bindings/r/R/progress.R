# The function that reports the progress of a fit, or NULL. `progress` is TRUE or "bar", "message", FALSE, or a function.
fit_reporter <- function(progress) {
  reporter(progress, bar = function(state, bar) {
    if (is.null(bar)) bar <- txtProgressBar(max = state$epochs, style = 3)
    setTxtProgressBar(bar, state$epoch)
    bar
  }, text = function(state) {
    errors <- c(training = state$train_rmse, validation = state$valid_rmse, test = state$test_rmse)
    errors <- errors[is.finite(errors)]
    paste0("epoch ", state$epoch, " of ", state$epochs,
      if (length(errors) > 0) paste0(", RMSE: ", paste(names(errors), format(errors, digits = 4), collapse = ", ")))
  })
}

tune_reporter <- function(progress) {
  reporter(progress, bar = function(state, bar) {
    if (is.null(bar) || attr(bar, "rung") != state$rung) {
      if (!is.null(bar)) close(bar)
      bar <- structure(txtProgressBar(max = state$total, style = 3), rung = state$rung)
    }
    setTxtProgressBar(bar, state$done)
    bar
  }, text = function(state) {
    paste0("rung ", state$rung, ": ", state$done, " of ", state$total, " trials, best validation RMSE ",
      format(state$best_rmse, digits = 4))
  })
}

# Returns report (NULL or a function of the state) and finish.
reporter <- function(progress, bar, text) {
  if (is.function(progress)) return(list(report = progress, finish = function() NULL))
  if (isTRUE(progress)) progress <- "bar"
  if (identical(progress, FALSE)) return(list(report = NULL, finish = function() NULL))
  if (identical(progress, "message")) {
    return(list(report = function(state) {
      message(text(state))
      TRUE
    }, finish = function() NULL))
  }
  if (!identical(progress, "bar")) bad_argument("progress must be TRUE, FALSE, \"bar\", \"message\" or a function")
  current <- NULL
  list(report = function(state) {
    current <<- bar(state, current)
    TRUE
  }, finish = function() if (!is.null(current)) close(current))
}
