# proof.c in R, by a shim in C. Arguments: the shim, the data folder.
arguments <- commandArgs(trailingOnly = TRUE)
dyn.load(arguments[1])
data <- function(name) file.path(arguments[2], name)

show <- function(epoch, train, test) {
  cat(sprintf("%d %.17g %.17g\n", as.integer(epoch), train, test))
  epoch == 3
}
model <- .Call("proof_fit", data("tensor.train.tns"), data("tensor.test.tns"), 4L, show)
cells <- matrix(c(1L, 2L, 3L, 1L, 11L, 101L, 1L, 2L, 3L), ncol = 3)
cat(paste(sprintf("%.17g", .Call("proof_predict", model, cells)), collapse = " "), "\n", sep = "")
failed <- tryCatch(.Call("proof_fit", data("no.such.tns"), data("tensor.test.tns"), 4L, show),
  error = function(e) conditionMessage(e)
)
stopifnot(grepl("no such file", failed))
rm(model)
invisible(gc())
