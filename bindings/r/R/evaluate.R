evaluate <- function(object, data = NULL, type = c("errors", "binary", "distribution", "ranking"), mode = NULL, by = NULL,
                     n = 10, relevant = NULL, train = NULL, quantile = NULL, threads = 0) {
  check_model(object)
  type <- check_choice(type)
  check_count(threads, "threads")
  entries <- if (is.null(data)) training_data(object)$handle else frame_tensor(object, data, "data")
  if (type == "ranking") {
    return(evaluate_ranking(object, entries, mode, by, n, relevant, train, quantile, threads))
  }
  scores <- switch(type,
    errors = .Call(r_evaluate, object$handle, entries, threads),
    binary = .Call(r_evaluate_binary, object$handle, entries, threads),
    distribution = .Call(r_evaluate_distributions, object$handle, entries, threads)
  )
  as.data.frame(scores)
}

evaluate_ranking <- function(object, entries, mode, by, n, relevant, train, quantile, threads) {
  if (is.null(mode) || is.null(by)) {
    bad_argument("rankings need mode, whose rows are ranked, and by, whose rows get a list each")
  }
  number <- mode_number(object, mode)
  by <- mode_number(object, by, "by")
  if (number == by) bad_argument("mode and by are both mode ", object$modes[by], "; they must be two modes")
  seen <- if (is.null(train)) training_data(object)$handle else frame_tensor(object, train, "train")
  found <- .Call(
    r_evaluate_ranking, object$handle, entries, seen, number, by,
    check_count(n, "n", 1), if (is.null(relevant)) NA_real_ else check_number(relevant, "relevant", -Inf),
    if (is.null(quantile)) 0 else check_fraction(quantile, "quantile"), threads
  )
  metrics <- rbind(found$model, found$popularity)
  data.frame(order = c("model", "popularity"), lists = found$users, hit_rate = metrics[, 1], recall = metrics[, 2],
    ndcg = metrics[, 3])
}
