#include <fmt/format.h>

#include <dtrain/base/text.hpp>
#include <dtrain/data/copy.hpp>
#include <dtrain/net/http.hpp>

#include "cli/command.hpp"
#include "job/report/progress_line.hpp"

namespace dtrain::cli {
namespace {

struct CopyCommand {
  std::string from, to;
  bool recursive = false;
};

void bind(config::OptionSet& set, CopyCommand& options) {
  set.group("Options");
  config::Option& from = set.add("SRC", options.from, "SRC", "source: a file, s3://BUCKET/KEY or https:// URL");
  config::Option& to = set.add("DST", options.to, "DST",
                               "target: a file, a folder or s3://BUCKET/KEY; a trailing / keeps the file's name");
  for (config::Option* place : {&from, &to}) {
    place->required = true;
    place->offers = config::Offers::files;
  }
  set.add("-r,--recursive", options.recursive, "copy everything below a folder, here or in a bucket");
}

// The copying threads tell one at a time, so the line is drawn by one at a time too.
data::CopyResult copy_with_progress(net::ObjectStore& store, const CopyCommand& options, Reporter& reporter) {
  job::ProgressLine progress(reporter);
  return data::copy_files(store, {.from = options.from,
                                  .to = options.to,
                                  .recursive = options.recursive,
                                  .progress = [&](std::string_view file, std::uint64_t done, std::uint64_t total) {
                                    progress.show(file, done, total, "bytes");
                                  }});
}

Json document(const CopyCommand& options, const data::CopyResult& result) {
  return Json::object({{"schema", "dtrain.data-cp/1"},
                       {"from", net::shown_url(options.from)},
                       {"to", options.to},
                       {"files", result.files},
                       {"bytes", result.bytes},
                       {"already_there", result.already_there},
                       {"resumed_bytes", result.resumed_bytes}});
}

ExitCode act(const CopyCommand& options, const config::OptionSet&, Reporter& reporter) {
  net::ObjectStore store;
  const data::CopyResult result = copy_with_progress(store, options, reporter);
  if (reporter.json()) {
    reporter.answer_json(document(options, result));
    return ExitCode::ok;
  }
  if (result.already_there > 0) reporter.note(fmt::format("{} files were already there", result.already_there));
  if (result.resumed_bytes > 0) reporter.note(fmt::format("{} were already sent", format_bytes(result.resumed_bytes)));
  reporter.answer(fmt::format("{}  {} files, {}", options.to, result.files, format_bytes(result.bytes)));
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_data_cp() {
  auto command = make_command<CopyCommand>("data cp", "copy files to or from s3://, or from https://", act);
  command->examples = {"dtrain data cp d/shapes_train.rec s3://bucket/shapes/",
                       "dtrain data cp -r s3://bucket/shapes d",
                       "dtrain data cp https://example.org/photos.tar photos.tar"};
  command->see_also = {"data unpack", "train"};
  return command;
}

}  // namespace dtrain::cli
