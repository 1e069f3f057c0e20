# Names files are complete or not there at all.
source("helper.R")
ratings <- named_ratings()
model <- s3cmtf(rating ~ user + film + month, ratings, rank = 2, epochs = 1)
path <- scratch("model.s3m")
folder <- dirname(path)
save_model(model, path)
expect_equal(sort(list.files(folder)), c("model.s3m", paste0("model.s3m.", c("mode1.tsv", "mode2.tsv", "modes.tsv", "rds"))))

# Only files of this package are replaced; anything else is renamed, and a link is not followed.
target <- file.path(folder, "target")
labelled <- s3cmtf(rating ~ user + film + month, ratings, list(month = coupled(diag(6)[, c(2:6, 1)], "full", weight = 1)), rank = 2, epochs = 1)
labelled$columns[[1]] <- letters[1:6]
expect_equal(names(s3cmtf:::names_files(path, unname(labelled$columns), "matrix")), paste0(path, ".matrix1.tsv"))
for (end in c("mode2.tsv", "modes.tsv", "matrix1.tsv")) {
  model <- if (end == "matrix1.tsv") labelled else model
  file <- paste0(path, ".", end)
  for (text in list("index\tname\n1\tmine\n", "precious", NULL)) {
    unlink(c(file, target))
    if (!is.null(text)) cat(text, file = target)
    file.symlink(target, file)
    expect_warning(save_model(model, path), pattern = "is now called .*\\.old", class = "s3cmtf_warning")
    expect_equal(Sys.readlink(file), "")
    expect_equal(Sys.readlink(paste0(file, ".old")), target)
    expect_equal(if (file.exists(target)) readChar(target, 100), text)
    unlink(paste0(file, ".old"))
  }
  unlink(c(file, target))
  dir.create(file)
  expect_warning(save_model(model, path), pattern = "is now called .*\\.old", class = "s3cmtf_warning")
  expect_true(dir.exists(paste0(file, ".old")) && !dir.exists(file))
  unlink(paste0(file, ".old"), recursive = TRUE)
  unlink(file)
  system2("mkfifo", shQuote(file))
  expect_warning(save_model(model, path), pattern = "is now called .*\\.old", class = "s3cmtf_warning")
  cat("precious", file = file)
  expect_warning(save_model(model, path), pattern = "is now called .*\\.old2", class = "s3cmtf_warning")
  expect_equal(readChar(paste0(file, ".old2"), 100), "precious")
  expect_equal(readLines(file, 1), if (end == "modes.tsv") s3cmtf:::modes_title(path) else "index\tname")
  unlink(paste0(file, c(".old", ".old2")))
}
unlink(paste0(path, ".matrix1.tsv"))
model <- s3cmtf(rating ~ user + film + month, ratings, rank = 2, epochs = 1)
save_model(model, path)
formula <- paste0(path, ".rds")
unlink(formula)
cat("precious", file = target)
file.symlink(target, formula)
expect_warning(save_model(model, path), pattern = "is now called .*\\.old", class = "s3cmtf_warning")
expect_equal(readLines(target, warn = FALSE), "precious")
unlink(c(target, paste0(formula, ".old")))
expect_equal(sort(list.files(folder)), c("model.s3m", paste0("model.s3m.", c("mode1.tsv", "mode2.tsv", "modes.tsv", "rds"))))

expect_equal(list.files(folder, "tmp$"), character())
expect_error(write_coo(model$data, file.path(folder, "none", "ratings.coo")), pattern = "none/ratings.coo: its folder does not exist", class = "s3cmtf_BAD_FILE")

# Nothing is replaced if a name cannot be encoded.
wrong <- model
wrong$labels[[1]][2] <- "\xff"
Encoding(wrong$labels[[1]]) <- "UTF-8"
before <- tools::md5sum(path)
other <- s3cmtf(rating ~ user + film + month, ratings, rank = 3, epochs = 1)
other$labels <- wrong$labels
expect_error(save_model(other, path), pattern = "name 2 of model.s3m.mode1.tsv is not valid UTF-8", class = "s3cmtf_BAD_ARGUMENT")
expect_equal(tools::md5sum(path), before)
expect_equal(list.files(folder, "tmp$"), character())

# A limit on the size of files acts as a full disk.
full <- scratch("full.coo")
code <- "library(s3cmtf); tensor <- coo_tensor(sprintf('row %050d', 1:1e4), rep(1L, 1e4), dims = c(1e4, 1));
  cat(tryCatch(s3cmtf:::with_tensor_names(tensor, Sys.getenv('STEM'), function() 'written'), error = function(e) class(e)[1]))"
script <- scratch("full.R")
writeLines(code, script)
command <- paste("trap '' XFSZ; ulimit -f 100;", shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script))
Sys.setenv(STEM = sub(".coo$", "", full), R_LIBS = paste(.libPaths(), collapse = ":"))
outcome <- suppressWarnings(system2("sh", c("-c", shQuote(command)), stdout = TRUE, stderr = TRUE))
expect_equal(tail(outcome, 1), "s3cmtf_SYSTEM")
expect_equal(list.files(dirname(full)), character())
