#include <dtrain/train/ledger.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::train {
namespace {

constexpr std::uint64_t kReserve = 1 << 20;  // thousands of steps on a disk that others filled

// Numbers of generations begin anew when a job without a coordinator is resumed, so a file's order counts too.
struct Term {
  std::uint64_t generation = 0;
  int again = 0;  // how often the file had this generation before
  friend auto operator<=>(const Term&, const Term&) = default;
};

struct Entry {
  Term term;
  Ledger::Step step;
  std::optional<std::uint64_t> begins;
  std::vector<std::uint32_t> ids;
};

struct Records {
  std::uint64_t samples = 0;
  struct Start {
    Ledger::Step step;
    std::set<std::uint64_t> kept;  // later steps of its epoch
    bool takes(const Ledger::Step& other) const {
      return step <= other && (other.first != step.first || !kept.contains(other.second));
    }
  };
  std::map<Term, Start> starts;
  std::vector<Entry> entries;
};

Ledger::Step step_from(const Json& json) {
  return {static_cast<std::uint32_t>(json.at("epoch").as_integer()),
          static_cast<std::uint64_t>(json.at("step").as_integer())};
}

std::optional<Json> whole_line(const std::string& line, const Path& path) {
  try {
    return Json::parse(line, path.string());
  } catch (const DataError&) {
    return {};  // cut off by a crash
  }
}

void read_file_into(Records& records, const Path& path) {
  std::map<std::uint64_t, int> headers;
  for (const std::string& line : split(read_file(path), '\n')) {
    if (line.empty()) continue;
    const std::optional<Json> json = whole_line(line, path);
    if (!json) continue;
    const auto generation = static_cast<std::uint64_t>(json->at("generation").as_integer());
    if (const Json* start = json->find("start")) {
      Records::Start& begun = records.starts[{generation, headers[generation]++}];
      begun.step = step_from(*start);
      if (const Json* kept = json->find("kept")) {
        for (const Json& step : kept->as_array()) begun.kept.insert(static_cast<std::uint64_t>(step.as_integer()));
      }
      if (const Json* samples = json->find("samples")) {
        records.samples = static_cast<std::uint64_t>(samples->as_integer());
      }
      continue;
    }
    Entry entry{{generation, headers[generation] - 1}, step_from(*json), {}, {}};
    if (const Json* at = json->find("at")) entry.begins = static_cast<std::uint64_t>(at->as_integer());
    for (const Json& id : json->at("ids").as_array()) entry.ids.push_back(static_cast<std::uint32_t>(id.as_integer()));
    records.entries.push_back(std::move(entry));
  }
}

bool counts(const Records& records, const Entry& entry) {
  return std::ranges::none_of(
      records.starts, [&](const auto& other) { return other.first > entry.term && other.second.takes(entry.step); });
}

}  // namespace

LedgerWriter::LedgerWriter(const LedgerOptions& options)
    : file_((make_folder(options.folder), options.folder / (options.worker + ".jsonl"))) {
  file_.reserve(kReserve);
}

void LedgerWriter::begin_generation(std::uint64_t generation, const Cursor& start, std::uint64_t samples,
                                    const std::set<std::uint64_t>& kept) {
  generation_ = generation;
  Json line = Json::object({{"generation", generation},
                            {"start", Json::object({{"epoch", start.epoch}, {"step", start.step}})},
                            {"samples", samples}});
  if (!kept.empty()) line["kept"] = Json(Json::Array(kept.begin(), kept.end()));
  append(line);
}

void LedgerWriter::add(const Cursor& cursor, std::span<const std::uint32_t> ids) {
  append(Json::object({{"generation", generation_},
                       {"epoch", cursor.epoch},
                       {"step", cursor.step},
                       {"at", cursor.position},
                       {"ids", Json::Array(ids.begin(), ids.end())}}));
}

// The newline goes first, so that a line which a crash cut off damages no other. What cannot be written now is written
// before the next line: training does not wait for a disk.
void LedgerWriter::append(const Json& line) {
  try {
    file_.append(line.dump().insert(0, 1, '\n'));
    said_ = false;
  } catch (const Error& error) {
    if (!std::exchange(said_, true)) complaint_ = error.what();
  }
}

void LedgerWriter::finish(std::chrono::milliseconds patience) {
  constexpr auto kPause = std::chrono::milliseconds(50);
  for (const auto until = std::chrono::steady_clock::now() + patience; file_.is_behind();
       std::this_thread::sleep_for(kPause)) {
    try {
      file_.catch_up();
    } catch (const Error& error) {
      if (std::chrono::steady_clock::now() < until) continue;
      complaint_ = fmt::format("{}: the last lines are lost", error.what());
      return;
    }
  }
}

std::vector<std::uint32_t> Ledger::epoch(std::uint32_t epoch) const {
  std::vector<std::uint32_t> ids;
  for (const auto& [step, of_step] : steps) {
    if (step.first == epoch) ids.insert(ids.end(), of_step.begin(), of_step.end());
  }
  std::ranges::sort(ids);
  return ids;
}

std::map<std::uint32_t, std::uint64_t> Ledger::missing() const {
  std::map<std::uint32_t, std::uint64_t> missing;
  if (begins.size() != steps.size()) return missing;  // an older dtrain wrote it
  for (auto each = steps.begin(); each != steps.end(); ++each) {
    const auto next = std::next(each);
    const auto& [epoch, step] = each->first;
    if (each != steps.begin() && std::prev(each)->first.first != epoch) missing[epoch] += begins.at(each->first);
    if (next == steps.end()) continue;
    const std::uint64_t end = next->first.first == epoch ? begins.at(next->first) : samples;
    missing[epoch] += end - std::min<std::uint64_t>(end, begins.at(each->first) + each->second.size());
  }
  std::erase_if(missing, [](const auto& entry) { return entry.second == 0; });
  return missing;
}

Ledger read_ledger(const Path& folder) {
  Records records;
  std::error_code error;
  for (auto file = std::filesystem::directory_iterator(folder, error); !error && file != end(file);
       file.increment(error)) {
    if (file->path().extension() == ".jsonl") read_file_into(records, file->path());
  }
  if (error) throw Error(fmt::format("{}: cannot list the folder: {}", folder.string(), error.message()));
  Ledger ledger;
  ledger.samples = records.samples;
  for (const Entry& entry : records.entries) {
    if (!counts(records, entry)) continue;
    if (entry.begins) ledger.begins[entry.step] = *entry.begins;
    std::vector<std::uint32_t>& ids = ledger.steps[entry.step];
    ids.insert(ids.end(), entry.ids.begin(), entry.ids.end());
  }
  for (auto& [step, ids] : ledger.steps) std::ranges::sort(ids);
  return ledger;
}

}  // namespace dtrain::train
