plot.s3cmtf <- function(x, xlab = "epoch", ylab = "RMSE", main = NULL, ...) {
  epochs <- as.data.frame(.Call(r_model_epochs, x$handle))
  errors <- epochs[c("train_rmse", "valid_rmse", "test_rmse")]
  names(errors) <- c("training", "validation", "test")
  errors <- errors[vapply(errors, function(e) any(is.finite(e)), NA)]
  if (length(errors) == 0) bad_argument("the model has no record of errors")
  colours <- c(training = "grey40", validation = "#D55E00", test = "#0072B2")[names(errors)]
  old <- legend_margin(names(errors))
  on.exit(par(old))
  matplot(epochs$epoch, errors, type = "b", pch = 20, lty = 1, col = colours, xlab = xlab, ylab = ylab, main = main, ...)
  record <- parse_lines(.Call(r_model_record, x$handle))
  best <- suppressWarnings(as.numeric(record$best_epoch))
  if (length(best) == 1 && !is.na(best) && "validation" %in% names(errors)) abline(v = best, lty = 3, col = "grey60")
  margin_legend(names(errors), col = colours, pch = 20, lty = 1)
  invisible(epochs)
}

# Widens the right margin for a legend, about half a line per letter. Returns the settings to restore.
legend_margin <- function(texts) {
  margins <- par("mar")
  margins[4] <- 3.5 + 0.5 * max(nchar(texts))
  par(mar = margins)
}

margin_legend <- function(texts, ...) {
  usr <- par("usr")
  legend(usr[2] + 0.02 * diff(usr[1:2]), usr[4], texts, xpd = NA, bty = "n", ...)
}

plot.s3cmtf_clusters <- function(x, which = c("rows", "gap"), main = NULL, ...) {
  which <- check_choice(which)
  if (which == "gap") plot_gap(x, main, ...) else plot_rows(x, main, ...)
  invisible(x)
}

plot_rows <- function(x, main, ...) {
  if (is.null(x$coordinates)) bad_argument("there are fewer than two rows to plot")
  colours <- hcl.colors(max(length(x$size), 2), "Dark 3")
  named <- paste(seq_along(x$size), vapply(seq_along(x$size), function(i) {
    first <- x$labels$column[x$labels$cluster == i]
    if (length(first) > 0) as.character(first[1]) else ""
  }, ""))
  old <- legend_margin(named)
  on.exit(par(old))
  plot(x$coordinates, col = colours[x$cluster], pch = 20, xlab = "first principal component",
    ylab = "second principal component", main = main, ...)
  margin_legend(named, col = colours[seq_along(x$size)], pch = 20)
}

plot_gap <- function(x, main, ...) {
  if (is.null(x$gap)) bad_argument("there is no gap curve; give max_k, or leave k out")
  gap <- x$gap
  bounds <- range(gap$gap - gap$standard_error, gap$gap + gap$standard_error)
  plot(gap$k, gap$gap, type = "b", pch = 20, ylim = bounds, xlab = "number of clusters", ylab = "gap", main = main, ...)
  visible <- gap$standard_error > 0.002 * diff(bounds)
  arrows(gap$k[visible], (gap$gap - gap$standard_error)[visible], y1 = (gap$gap + gap$standard_error)[visible],
    angle = 90, code = 3, length = 0.04)
  abline(v = length(x$size), lty = 3, col = "grey60")
}
