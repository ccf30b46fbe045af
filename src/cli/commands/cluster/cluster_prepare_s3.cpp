#include <fmt/format.h>

#include <dtrain/base/text.hpp>
#include <dtrain/data/bundle.hpp>

#include "cli/command.hpp"
#include "job/report/progress_line.hpp"

namespace dtrain::cli {
namespace {

struct PrepareCommand {
  std::vector<Path> sources;
  std::string to;
};

void bind(config::OptionSet& set, PrepareCommand& options) {
  set.group("Options");
  set.add_paths("SOURCE", options.sources,
                "files and folders to send, folders with all their content; each keeps its name")
      .required = true;
  config::Option& to =
      set.add("--to", options.to, "URL", "target archive, s3://BUCKET/NAME.tar; an existing object is replaced");
  to.required = to.flag_only = true;
}

data::BundleResult send_with_progress(const PrepareCommand& options, Reporter& reporter) {
  net::ObjectStore store;
  job::ProgressLine progress(reporter);
  return data::send_bundle(store, {.sources = options.sources,
                                   .to = options.to,
                                   .progress = [&](std::string_view file, std::uint64_t done, std::uint64_t total) {
                                     progress.show(options.to, done, total, "bytes", {std::string(file)});
                                   }});
}

Json document(const PrepareCommand& options, const data::BundleResult& result) {
  return Json::object({{"schema", "dtrain.cluster-prepare-s3/1"},
                       {"to", options.to},
                       {"files", result.files},
                       {"bytes", result.bytes},
                       {"size", result.size},
                       {"resumed_bytes", result.resumed_bytes},
                       {"checksum_crc32c", result.checksum},
                       {"read_back", result.read_back}});
}

ExitCode act(const PrepareCommand& options, const config::OptionSet&, Reporter& reporter) {
  const data::BundleResult result = send_with_progress(options, reporter);
  if (!result.read_back) reporter.warn("the archive was not verified: the credentials allow writing but not reading");
  if (reporter.json()) {
    reporter.answer_json(document(options, result));
    return ExitCode::ok;
  }
  if (result.resumed_bytes > 0) reporter.note(fmt::format("{} were already sent", format_bytes(result.resumed_bytes)));
  reporter.answer(fmt::format("{}  {}, {}, CRC-32C {}", options.to, count_text(result.files, "file"),
                              format_bytes(result.size), result.checksum));
  reporter.note(fmt::format("on a node: dtrain data unpack {} --out FOLDER", options.to));
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_prepare_s3() {
  auto command = make_command<PrepareCommand>("cluster prepare-s3",
                                              "upload files and folders to a bucket as one tar archive", act);
  command->examples = {"dtrain cluster prepare-s3 photos model.npz train.sh --to s3://bucket/photos.tar"};
  command->see_also = {"data unpack", "data cp", "cluster up"};
  return command;
}

}  // namespace dtrain::cli
