#include "pack_command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/text.hpp>

#include "job/report/progress.hpp"

namespace dtrain::cli {

void bind_pack(config::OptionSet& set, PackCommand& options) {
  data::PackOptions& pack = options.pack;
  pack.threads = usable_cpus();
  set.group("Files");
  set.add("--out", pack.out, "PREFIX of the files that are written: PREFIX.rec, .idx, .lst").required = true;
  set.add("--shards", pack.shards, "N", "write PREFIX_0.rec to PREFIX_<N-1>.rec", config::between(1, 100000));
  set.add("--shuffle", pack.shuffle, "mix the pictures first");
  set.add("--seed", pack.seed, "N", "what the mixing depends on");
  set.add("--train-ratio", pack.train_ratio, "SHARE",
          "this share goes to PREFIX_train, the rest to PREFIX_val; below 1 it mixes always", config::between(0, 1));
  set.group("Pictures");
  set.add("--resize", pack.resize, "PIXELS", "length of the shorter edge; 0: as it is", config::between(0, 65500));
  set.add("--quality", pack.quality, "N", "of JPEG; without it, pictures that need no change stay byte for byte",
          config::between(1, 100));
  set.add_choice("--encoding", options.encoding, options.encodings, "how each picture is stored");
  set.add("--threads", pack.threads, "N", "pictures that are worked on at once", config::at_least(1)).by_machine = true;
}

namespace {

data::PackResult pack_with_progress(const PackCommand& command, Reporter& reporter) {
  job::Progress progress(reporter);
  data::PackOptions options = command.pack;
  options.encoding = data::parse_encoding(command.encoding);  // none: what each picture has
  options.progress = [&](std::uint64_t done, std::uint64_t total) { progress.show("pack", done, total, "pictures"); };
  return data::pack(options);
}

Json document(const data::PackResult& result) {
  Json files = Json::array(), problems = Json::array(), classes = Json::array();
  for (const auto& file : result.files) {
    files.push_back(Json::object({{"file", file.rec.string()}, {"records", file.records}, {"bytes", file.bytes}}));
  }
  for (const auto& each : result.problems) {
    problems.push_back(Json::object({{"file", each.file}, {"what", each.what}}));
  }
  for (const std::string& name : result.classes) classes.push_back(name);
  return Json::object({{"schema", "dtrain.data-pack/1"},
                       {"files", files},
                       {"classes", classes},
                       {"problems", problems},
                       {"unlabelled", std::uint64_t{result.unlabelled}},
                       {"taken_up", result.taken_up}});
}

}  // namespace

void tell_problems(const std::vector<data::PackProblem>& problems, Reporter& reporter) {
  constexpr std::size_t kShown = 10;
  for (std::size_t i = 0; i < std::min(kShown, problems.size()); ++i) {
    reporter.warn(fmt::format("left out {}: {}", problems[i].file, problems[i].what));
  }
  if (problems.size() > kShown) reporter.warn(fmt::format("and {} more", problems.size() - kShown));
}

ExitCode pack_pictures(const PackCommand& options, Reporter& reporter) {
  const data::PackResult result = pack_with_progress(options, reporter);
  if (result.taken_up > 0) reporter.note(fmt::format("{} records were there from an earlier run", result.taken_up));
  if (result.unlabelled > 0) reporter.note(fmt::format("{} pictures without a label left out", result.unlabelled));
  tell_problems(result.problems, reporter);
  if (reporter.json()) {
    reporter.answer_json(document(result));
  } else {
    for (const auto& file : result.files) {
      reporter.answer(fmt::format("{}  {} records, {}", file.rec.string(), file.records, format_bytes(file.bytes)));
    }
  }
  return result.problems.empty() ? ExitCode::ok : ExitCode::partly_done;
}

}  // namespace dtrain::cli
