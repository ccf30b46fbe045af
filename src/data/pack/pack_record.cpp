#include "pack_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>

#include "set_files.hpp"

namespace dtrain::data {
namespace {

constexpr std::string_view kSchema = "dtrain.pack/1";

std::string plan_of(const PackOptions& options, const Pictures& pictures) {
  Sha256 hash;
  const auto add = [&](const std::string& text) { hash.update(bytes_of(text + "\n")); };
  add(fmt::format("{} {} {} {} {} {} {} {}", kSchema, options.resize, options.quality.value_or(0),
                  options.encoding ? encoding_name(*options.encoding) : "kept", options.shards, options.shuffle,
                  options.seed, options.train_ratio.value()));
  if (options.train_ratio < 1) add("each class is split");
  if (options.test_ratio > 0) add(fmt::format("tests {}", options.test_ratio));
  if (options.labels) add(join(pictures.list.classes, "\n"));  // the names of files do not show them
  for (const PackItem& item : pictures.list.items) {
    if (item.split != PackSplit::train) add(item.split == PackSplit::validation ? "validates" : "tests");
    add(fmt::format("{} {} {}", item.id, item.file, pictures.store->stamp(item)));
    hash.update(std::as_bytes(std::span(item.labels)));
    hash.update(bytes_of(item.objects));
  }
  return hash.hex();
}

Json to_json(const FinishedShard& shard) {
  Json problems = Json::array();
  for (const PackProblem& each : shard.problems) {
    problems.push_back(Json::object({{"file", each.file}, {"what", each.what}}));
  }
  return Json::object({{"file", shard.file.rec.filename().string()},
                       {"records", shard.file.records},
                       {"bytes", shard.file.bytes},
                       {"problems", problems}});
}

FinishedShard from_json(const Json& json, const Path& folder) {
  FinishedShard shard{
      {folder / json.at("file").as_string(), static_cast<std::uint64_t>(json.at("records").as_integer()),
       static_cast<std::uint64_t>(json.at("bytes").as_integer())},
      {}};
  for (const Json& each : json.at("problems").as_array()) {
    shard.problems.push_back({each.at("file").as_string(), each.at("what").as_string()});
  }
  return shard;
}

// Of a whole journal, or of one of its earlier sets.
EarlierSet earlier_set_from(const Json& json) {
  EarlierSet set{.classes = json.at("classes"), .files = {}};
  for (const Json& each : json.at("files").as_array())
    set.files[each.at("file").as_string()] = static_cast<std::uint64_t>(each.at("bytes").as_integer());
  return set;
}

Json to_json(const std::vector<EarlierSet>& sets) {
  Json all = Json::array();
  for (const EarlierSet& set : sets) {
    Json files = Json::array();
    for (const auto& [name, bytes] : set.files) files.push_back(Json::object({{"file", name}, {"bytes", bytes}}));
    all.push_back(Json::object({{"classes", set.classes}, {"files", files}}));
  }
  return all;
}

Json names_json(const std::vector<std::string>& names) { return Json(Json::Array(names.begin(), names.end())); }

// As a file gives them back: what is no UTF-8 is replaced.
Json names_in_file(const std::vector<std::string>& names) { return Json::parse(names_json(names).dump(), "names"); }

}  // namespace

PackJournal::PackJournal(const PackOptions& options, const Pictures& pictures)
    : path_(options.out.string() + ".pack.json"),
      plan_(plan_of(options, pictures)),
      classes_(pictures.list.classes),
      force_(options.force) {
  read();
}

void PackJournal::begin(const std::vector<Path>& planned) {
  for (const Path& rec : planned) {
    if (!finished(rec)) unfinished_.insert(rec.filename().string());
  }
  earlier_.clear();
  for (const Path& rec : made_before()) {
    if (!finished(rec)) earlier_.push_back(rec.filename().string());
  }
  for (const std::vector<Path>& known : {made_before(), left_unfinished()}) {
    for (const Path& rec : known) left_over_.insert(rec.filename().string());
  }
  for (const Path& rec : planned) left_over_.erase(rec.filename().string());
  drop_replaced_sets();
  if (!takes_up_) write();
}

void PackJournal::forget_earlier() {
  if (earlier_.empty() && left_over_.empty() && left_unfinished_.empty()) return;
  earlier_.clear();
  left_over_.clear();
  earlier_sets_.clear();
  write();
}

void PackJournal::withdraw() const {
  if (takes_up_ || !finished_.empty()) return;
  if (before_) {
    write_file_atomic(path_, *before_);
  } else {
    std::error_code error;
    std::filesystem::remove(path_, error);
  }
}

// A damaged one, or one of another plan or with other names of classes, is as none. So is by force one that was
// finished, since its files may be damaged.
void PackJournal::read() try {
  if (!std::filesystem::exists(path_)) return;
  before_ = read_file(path_);
  const Json json = Json::parse(*before_, path_.string());
  if (json.at("schema").as_string() != kSchema) return;
  for (const Json& each : json.at("files").as_array()) note_named(each.at("file").as_string(), named_);
  for (const auto& [key, files] : {std::pair{"earlier", &named_}, std::pair{"unfinished", &left_unfinished_}}) {
    const Json* const names = json.find(key);
    if (!names) continue;
    for (const Json& name : names->as_array()) note_named(name.as_string(), *files);
  }
  note_earlier_sets(json);
  const bool is_other = json.at("plan").as_string() != plan_ || json.at("classes") != names_in_file(classes_);
  if (is_other || (force_ && left_unfinished_.empty())) {
    EarlierSet replaced = earlier_set_from(json);
    for (EarlierSet& set : earlier_sets_)
      std::erase_if(set.files, [&](const auto& file) { return replaced.files.contains(file.first); });
    earlier_sets_.push_back(std::move(replaced));
    return;
  }
  for (const Json& each : json.at("files").as_array()) finished_.push_back(from_json(each, path_.parent_path()));
  takes_up_ = true;
} catch (const DataError&) {
  finished_.clear();
}

// Another plan removes these files, so a journal that somebody changed must not name files of others.
void PackJournal::note_named(const std::string& name, std::set<Path>& files) const {
  const std::string prefix = Path(path_).replace_extension().replace_extension().filename().string();
  const Path file = path_.parent_path() / name;
  const bool is_own = Path(name).filename() == name && name.starts_with(prefix) && name.ends_with(".rec");
  if (is_own) files.insert(file);
}

void PackJournal::note_earlier_sets(const Json& journal) {
  const Json* const sets = journal.find("earlier_sets");
  if (!sets) return;
  for (const Json& set : sets->as_array()) earlier_sets_.push_back(earlier_set_from(set));
}

// Files that are gone or finished by this plan are of no earlier set any more.
void PackJournal::drop_replaced_sets() {
  for (EarlierSet& set : earlier_sets_) {
    std::erase_if(set.files,
                  [&](const auto& file) { return std::ranges::find(earlier_, file.first) == earlier_.end(); });
  }
  std::erase_if(earlier_sets_, [](const EarlierSet& set) { return set.files.empty(); });
}

std::vector<Path> PackJournal::made_before() const {
  std::vector<Path> there;
  std::set<Path> known = named_;
  known.insert(left_unfinished_.begin(), left_unfinished_.end());
  std::ranges::copy_if(known, std::back_inserter(there), [](const Path& rec) { return std::filesystem::exists(rec); });
  return there;
}

void PackJournal::write() const {
  Json files = Json::array();
  for (const FinishedShard& shard : finished_) files.push_back(to_json(shard));
  Json journal =
      Json::object({{"schema", kSchema}, {"plan", plan_}, {"classes", names_json(classes_)}, {"files", files}});
  if (!earlier_.empty()) journal["earlier"] = names_json(earlier_);
  if (!earlier_sets_.empty()) journal["earlier_sets"] = to_json(earlier_sets_);
  std::set<std::string> unfinished = unfinished_;
  std::ranges::copy_if(left_over_, std::inserter(unfinished, unfinished.end()), [&](const std::string& name) {
    return unfinished_.empty() || left_unfinished_.contains(path_.parent_path() / name);
  });
  if (!unfinished.empty()) journal["unfinished"] = names_json({unfinished.begin(), unfinished.end()});
  write_file_atomic(path_, journal.dump(1) + "\n");
}

std::optional<FinishedShard> PackJournal::finished(const Path& rec) const {
  for (const FinishedShard& shard : finished_) {
    std::error_code error;
    if (shard.file.rec.filename() == rec.filename() && std::filesystem::file_size(rec, error) == shard.file.bytes &&
        !error && has_companions(rec)) {
      return shard;
    }
  }
  return std::nullopt;
}

void PackJournal::add(const FinishedShard& shard) {
  std::erase_if(finished_,
                [&](const FinishedShard& each) { return each.file.rec.filename() == shard.file.rec.filename(); });
  finished_.push_back(shard);
  unfinished_.erase(shard.file.rec.filename().string());
  write();
}

}  // namespace dtrain::data
