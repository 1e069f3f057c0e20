# Interrupts and forked processes.
source("helper.R")
ratings <- fixture_ratings()
interrupt <- function(...) {
  tools::pskill(Sys.getpid(), tools::SIGINT)
  TRUE
}
outcome <- tryCatch(
  s3cmtf(rating ~ user + film + month, ratings, rank = 3, epochs = 1e6, progress = interrupt),
  interrupt = function(condition) "interrupted"
)
expect_equal(outcome, "interrupted")
outcome <- tryCatch(
  s3cmtf_tune(rating ~ user + film + month, ratings, trials = 1e4, rungs = 1, epochs = 50, progress = interrupt),
  interrupt = function(condition) "interrupted"
)
expect_equal(outcome, "interrupted")
# Work goes on afterwards.
model <- s3cmtf(rating ~ user + film + month, ratings, rank = 3, epochs = 3)
expected <- sum(predict(model, ratings))
# The child processes use the handles of the parent and may fit models of their own.
sums <- parallel::mclapply(1:2, function(i) sum(predict(model, ratings)), mc.cores = 2)
expect_equal(sums, list(expected, expected))
fits <- parallel::mclapply(1:2, function(i) factors(small_fit()), mc.cores = 2)
expect_equal(fits[[1]], factors(model))
# A handle that comes back from a child process has no data.
returned <- parallel::mclapply(1:2, function(i) small_fit(), mc.cores = 2)
expect_error(predict(returned[[1]], ratings), pattern = "another process", class = "s3cmtf_BAD_STATE")
expect_equal(sum(predict(model, ratings)), expected)
# A child process closes its own copy of a handle.
job <- parallel::mcparallel({
  close(model)
  tryCatch(predict(model, ratings), error = function(condition) class(condition)[1])
})
expect_equal(parallel::mccollect(job)[[1]], "s3cmtf_BAD_STATE")
expect_equal(sum(predict(model, ratings)), expected)
# A process that is started while a fit runs.
sums <- numeric()
fork <- function(state) {
  sums <<- c(sums, unlist(parallel::mccollect(parallel::mcparallel(sum(predict(small_fit(), ratings))))))
  FALSE
}
invisible(suppressMessages(s3cmtf(rating ~ user + film + month, ratings, rank = 3, epochs = 1e6, progress = fork)))
expect_equal(unname(sums[1]), expected)
# The data may be closed while a fit runs.
data <- as_coo_tensor(rating ~ user + film + month, ratings)
stop_fit <- function(state) {
  close(data)
  FALSE
}
expect_equal(length(factors(suppressMessages(s3cmtf(data, rank = 3, epochs = 1e6, progress = stop_fit)))), 3)
