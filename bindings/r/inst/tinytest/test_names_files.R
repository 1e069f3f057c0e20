# Names files are complete or not there at all.
source("helper.R")
ratings <- named_ratings()
model <- s3cmtf(rating ~ user + film + month, ratings, rank = 2, epochs = 1)
path <- scratch("model.s3m")
folder <- dirname(path)
save_model(model, path)
expect_equal(sort(list.files(folder)), c("model.s3m", paste0("model.s3m.", c("mode1.tsv", "mode2.tsv", "modes.tsv", "rds"))))

# A names file that cannot be replaced.
unlink(names <- paste0(path, ".mode2.tsv"))
dir.create(names)
expect_error(save_model(model, path), pattern = "model.s3m.mode2.tsv: cannot be written", class = "s3cmtf_SYSTEM")
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
