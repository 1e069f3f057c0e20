predict.s3cmtf <- function(object, newdata = NULL, interval = c("none", "prediction"), level = 0.9, deviation = FALSE,
                           quantiles = NULL, clip = NULL, unknown = c("mean", "NA", "error"), threads = 0, ...) {
  check_no_dots(...)
  interval <- check_choice(interval)
  unknown <- check_choice(unknown)
  if (interval == "prediction") {
    check_fraction(level, "level")
    bounds <- c((1 - level) / 2, (1 + level) / 2)
  } else {
    bounds <- NULL
  }
  if (!is.null(quantiles) && !(is.numeric(quantiles) && isTRUE(all(quantiles > 0 & quantiles < 1)))) {
    bad_argument("quantiles must be numbers above 0 and below 1")
  }
  cells <- predict_cells(object, newdata, unknown)
  all <- as.double(c(bounds, quantiles))
  found <- .Call(r_predict, object$handle, cells$cells, clip_code(clip), check_count(threads, "threads"),
    check_flag(deviation, "deviation"), all)
  if (length(cells$missing) > 0) found$fit[cells$missing] <- NA
  if (!deviation && length(all) == 0) return(found$fit)
  result <- cbind(fit = found$fit, deviation = found$deviation)
  if (length(all) > 0) {
    more <- t(matrix(found$quantiles, nrow = length(all)))
    colnames(more) <- c(if (!is.null(bounds)) c("lwr", "upr"),
      if (length(quantiles) > 0) paste0(format(100 * quantiles, trim = TRUE), "%"))
    result <- cbind(result, more)
  }
  result[cells$missing, ] <- NA
  result
}

clip_code <- function(clip) if (is.null(clip)) 0L else if (check_flag(clip, "clip")) 2L else 1L

# Cells as a handle or a list of indices, and the numbers of the cells whose prediction is NA.
predict_cells <- function(object, newdata, unknown) {
  if (is.null(newdata)) return(list(cells = training_data(object)$handle, missing = integer()))
  if (is.character(newdata) && !is.matrix(newdata)) newdata <- open_coo(newdata)
  is_tensor <- inherits(newdata, "coo_tensor")
  if (is_tensor && unknown == "mean") return(list(cells = frame_tensor(object, newdata, "newdata"), missing = integer()))
  is_table <- is_tensor || is.data.frame(newdata)
  indices <- if (is_table) match_entries(object, newdata, "newdata")$indices else cell_indices(object, newdata)
  missing <- Reduce(union, lapply(indices, function(index) if (anyNA(index)) which(is.na(index)) else integer()))
  if (unknown != "mean") {
    absent <- Reduce(union, lapply(seq_along(indices), function(n) {
      which(!indices[[n]] %in% .Call(r_model_mode, object$handle, n)$rows)
    }))
    absent <- setdiff(absent, missing)
    if (unknown == "error" && length(absent) > 0) {
      bad_argument("cell ", min(absent), " has a row that the model does not have; unknown = \"mean\" uses the mean row")
    }
    missing <- union(missing, absent)
  }
  # Any row will do for cells whose prediction is replaced by NA.
  if (length(missing) > 0) {
    indices <- lapply(indices, function(index) {
      index[missing] <- 1L
      index
    })
  }
  list(cells = indices, missing = missing)
}

training_data <- function(object) {
  if (is.null(object$data)) {
    bad_argument("the model has no training data (it was loaded, or fitted with keep_data = FALSE); give the entries")
  }
  object$data
}

fitted.s3cmtf <- function(object, ...) predict(object)

residuals.s3cmtf <- function(object, ...) .Call(r_coo_values, training_data(object)$handle) - predict(object)
