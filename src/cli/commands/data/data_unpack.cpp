#include <fmt/format.h>

#include <dtrain/base/text.hpp>
#include <dtrain/data/copy.hpp>
#include <dtrain/net/http.hpp>

#include "cli/command.hpp"
#include "cli/commands/train/output_places.hpp"
#include "job/report/progress_line.hpp"
#include "pack_command.hpp"

namespace dtrain::cli {
namespace {

struct UnpackCommand {
  std::string from;
  Path out = "data";
};

void bind(config::OptionSet& set, UnpackCommand& options) {
  set.group("Options");
  config::Option& archive =
      set.add("ARCHIVE", options.from, "ARCHIVE",
              ".tar or .tar.gz file: a path, s3://BUCKET/KEY or https:// URL; or the path of a .zip file");
  archive.required = true;
  archive.offers = config::Offers::files;
  set.add("--out", options.out, "folder for the files; it is created if missing");
}

data::UnpackResult unpack_with_progress(net::ObjectStore& store, const UnpackCommand& options, Reporter& reporter) {
  job::ProgressLine progress(reporter);
  return data::unpack_archive(
      store, {.from = options.from, .out = options.out, .progress = [&](std::uint64_t done, std::uint64_t total) {
                progress.show(net::shown_url(options.from), done, total, "bytes");
              }});
}

ExitCode act(const UnpackCommand& options, const config::OptionSet&, Reporter& reporter) {
  require_on_this_machine({"--out", options.out}, "folder");
  net::ObjectStore store;
  const data::UnpackResult result = unpack_with_progress(store, options, reporter);
  if (result.lacks_end_mark) warn_of_missing_end(net::shown_url(options.from), reporter);
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.data-unpack/1"},
                                       {"from", net::shown_url(options.from)},
                                       {"out", options.out.string()},
                                       {"files", result.files},
                                       {"bytes", result.bytes},
                                       {"resumed_at", result.resumed_at}}));
    return ExitCode::ok;
  }
  if (result.resumed_at > 0) reporter.note(fmt::format("resumed at {}", format_bytes(result.resumed_at)));
  reporter.answer(fmt::format("{}  {} files, {}", options.out.string(), result.files, format_bytes(result.bytes)));
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_data_unpack() {
  auto command =
      make_command<UnpackCommand>("data unpack", "extract a tar or zip archive, a tar while it is downloaded", act);
  command->examples = {"dtrain data unpack s3://bucket/photos.tar --out photos",
                       "dtrain data unpack train2017.zip --out coco"};
  command->see_also = {"data cp", "data prepare"};
  return command;
}

}  // namespace dtrain::cli
