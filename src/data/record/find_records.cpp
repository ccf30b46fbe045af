#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/record.hpp>
#include <dtrain/net/ssh.hpp>

#include "file_patterns.hpp"
#include "find_records.hpp"
#include "set_document.hpp"

namespace dtrain::data {
namespace {

// A list of objects goes by the text of their names, so that it holds those of other folders too.
std::optional<std::uint64_t> shard_number(const std::string& prefix, const Path& file) {
  if (file.parent_path() != Path(prefix).parent_path()) return std::nullopt;
  const std::string stem = file.stem().string();
  const std::string lead = Path(prefix).filename().string() + "_";
  if (file.extension() != ".rec" || !stem.starts_with(lead)) return std::nullopt;
  const std::string_view digits = std::string_view(stem).substr(lead.size());
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  const auto number = parse_integer(digits);
  return number ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

bool is_file(const Path& path) {
  std::error_code none;
  return std::filesystem::is_regular_file(path, none);
}

// Such a folder cannot be there; several names with commas between them may be longer than one can be.
bool is_no_folder(const std::error_code& error) {
  return error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory ||
         error == std::errc::filename_too_long;
}

std::vector<Path> files_beside(const std::string& prefix) {
  const Path folder = Path(prefix).has_parent_path() ? Path(prefix).parent_path() : Path(".");
  std::vector<Path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    files.push_back(Path(prefix).parent_path() / entry->path().filename());
  if (error && !is_no_folder(error)) {
    throw DataError(fmt::format("{}: cannot list this folder: {}", folder.string(), error.message()),
                    "look at its permissions, or name each .rec file");
  }
  return files;
}

constexpr const char* kIncompleteHint = "copy every part of the set, or name the wanted files one by one";

// What the document of a set says of the shards of one prefix.
struct PackedShards {
  std::vector<Path> made, unfinished;
};

PackedShards packed_shards(const std::string& prefix, const std::string& packed, net::ObjectStore* store) {
  PackedShards said;
  const std::optional<Json> document = read_set_document(packed, store);
  if (!document) return said;
  const Path folder = Path(prefix).parent_path();
  if (const Json* files = document->find("files")) {
    for (const Json& each : files->as_array()) said.made.push_back(folder / each.at("file").as_string());
  }
  said.unfinished = unfinished_in(*document, folder);
  for (auto* files : {&said.made, &said.unfinished})
    std::erase_if(*files, [&](const Path& file) { return !shard_number(prefix, file); });
  return said;
}

// Without the last shards of a set the others have no gap, so that only what `data pack` wrote down shows it.
void require_packed_shards(const std::string& prefix, const std::vector<Path>& there, net::ObjectStore* store) {
  for (const auto& packed : {std::optional(prefix), without_split(prefix)}) {
    if (!packed) continue;
    const PackedShards said = advice_of([&] { return packed_shards(prefix, *packed, store); });
    const bool is_far = store != nullptr;  // those of a folder are looked at where it is known what they are for
    if (is_far && !said.unfinished.empty()) refuse_unfinished(said.unfinished.front(), *packed);
    for (const Path& file : said.made) {
      if (std::find(there.begin(), there.end(), file) != there.end()) continue;
      throw DataError(fmt::format("{} is not there, but {} names it as a part of the set", file.string(),
                                  set_document_path(*packed).string()),
                      kIncompleteHint);
    }
  }
}

// PREFIX_0.rec, PREFIX_1.rec, ... of these files: a missing one must not pass unseen.
std::vector<Path> shards(const std::string& prefix, std::vector<Path> files, net::ObjectStore* store) {
  std::erase_if(files, [&](const Path& file) { return !shard_number(prefix, file); });
  std::sort(files.begin(), files.end(), naturally_less);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (shard_number(prefix, files[i]) == i) continue;
    throw DataError(fmt::format("{}_{}.rec is not there, but {} is", prefix, i, files[i].string()), kIncompleteHint);
  }
  if (!files.empty()) require_packed_shards(prefix, files, store);
  return files;
}

constexpr std::string_view kSetDocument = ".pack.json";

// What a file beside records is by its ending; empty: none that `data pack` writes there.
std::string_view role_beside_records(const Path& file) {
  if (file.extension() == ".idx") return "index";
  return file.extension() == ".lst" ? "list" : "";
}

bool is_part(const Path& file) { return file.string().ends_with(".rec.part"); }

// Patterns such as p* match them too, and what an interrupted run left of records.
void drop_companions(std::vector<Path>& files) {
  std::erase_if(files, [](const Path& file) {
    return !role_beside_records(file).empty() || file.string().ends_with(kSetDocument) || is_part(file);
  });
}

// Asks no server: no set behind a URL has such a name.
void refuse_far_companion(const std::string& url) {
  const Path file = shown_path(url);
  const std::string name = file.string();
  if (name.ends_with(kSetDocument))
    throw DataError(fmt::format("{}: says what a set of records holds", name), "name the records of the set");
  const std::string_view role = role_beside_records(file);
  if (role.empty()) return;
  throw DataError(fmt::format("{}: is the {} of a record file", name, role),
                  fmt::format("name the records: {}", Path(file).replace_extension(".rec").string()));
}

std::vector<Path> far_files_of(const std::string& part, std::shared_ptr<net::ObjectStore> store) {
  const bool pattern = is_pattern(part);
  if (!net::is_s3_url(part) || !pattern) refuse_far_companion(part);
  if (!net::is_s3_url(part) || (part.ends_with(".rec") && !pattern)) return {part};
  if (!store) store = std::make_shared<net::ObjectStore>();
  std::vector<Path> files = pattern ? far_matches(part, *store) : far_files(part, *store);
  if (!pattern && std::find(files.begin(), files.end(), part + ".rec") != files.end()) return {part + ".rec"};
  if (!pattern) files = shards(part, std::move(files), store.get());
  drop_companions(files);
  if (files.empty())
    throw DataError(fmt::format("{}: no object has such a name", part), "dtrain data cp copies files there");
  return files;
}

// Empty where none is there. A name counts as a pattern last, since folders may be called a[1]. A shell completes the
// name of a set up to the dot, behind which the endings of its files differ.
std::vector<Path> near_files_of(const std::string& part) {
  if (is_file(part)) return {part};
  for (const std::string& name : {part + ".rec", part + "rec"}) {
    if (name.ends_with(".rec") && is_file(name)) return {name};
  }
  std::vector<Path> files = shards(part, files_beside(part), nullptr);
  if (!files.empty() || !is_pattern(part)) return files;
  files = matches(part);
  drop_companions(files);
  return files;
}

// What data pack makes of one prefix: a set for each split.
std::string hint_of_splits(const std::string& prefix) {
  std::vector<std::string> there;
  for (const char* split : {"_train", "_val", "_test"}) {
    if (!near_files_of(prefix + split).empty()) there.push_back(prefix + split);
  }
  return there.empty() ? "" : fmt::format("name a split that is there: {}", join(there, ", "));
}

// The prefix of a part of a set whose first part is there too, else the name without its ending.
std::string prefix_of_records(const Path& file) {
  const std::string whole = Path(file).replace_extension().string();
  const std::string base = whole.substr(0, whole.rfind('_'));
  return shard_number(base, file) && is_file(base + "_0.rec") ? base : whole;
}

// The sets that lie in it, or how its pictures become one.
std::string hint_of_folder(const std::string& folder) {
  constexpr std::size_t kMostNames = 6;
  std::vector<Path> files = files_beside(Path(folder) / "");
  std::erase_if(files, [](const Path& file) { return file.extension() != ".rec"; });
  std::sort(files.begin(), files.end(), naturally_less);
  std::vector<std::string> sets;
  for (const Path& file : files) {
    std::string prefix = prefix_of_records(file);
    if (std::find(sets.begin(), sets.end(), prefix) == sets.end()) sets.push_back(std::move(prefix));
  }
  if (sets.empty())
    return fmt::format("`dtrain data pack {} --out p` makes records of the pictures in it", net::shell_quoted(folder));
  const bool are_many = sets.size() > kMostNames;
  sets.resize(std::min(sets.size(), kMostNames));
  return fmt::format("name a set that is in it: {}{}", join(sets, ", "), are_many ? ", ..." : "");
}

[[noreturn]] void refuse_missing(const std::string& part) {
  std::error_code none;
  const bool is_folder = std::filesystem::is_directory(part, none);
  std::string hint = hint_of_splits(part);
  if (hint.empty() && is_folder) hint = hint_of_folder(part);
  throw DataError(fmt::format("{}: {}", part, is_folder ? "is a folder" : "no such file"), hint);
}

// The file that says what `data pack` made.
void refuse_set_document(const std::string& file) {
  if (!file.ends_with(kSetDocument) || !is_file(file)) return;
  const std::string prefix = file.substr(0, file.size() - kSetDocument.size());
  const bool is_one_set = is_file(prefix + ".rec") || is_file(prefix + "_0.rec");
  throw DataError(fmt::format("{}: says what the set {} holds", file, Path(prefix).filename().string()),
                  is_one_set ? fmt::format("name the set: {}", prefix) : hint_of_splits(prefix));
}

// A shell offers it beside the records.
void refuse_companion(const Path& file) {
  refuse_set_document(file.string());
  const Path records = Path(file).replace_extension(".rec");
  const std::string_view role = role_beside_records(file);
  if (role.empty() || !is_file(file) || !is_file(records)) return;
  throw DataError(fmt::format("{}: is the {} of {}", file.string(), role, records.filename().string()),
                  fmt::format("name that file, or {}", prefix_of_records(records)));
}

std::vector<Path> files_of(const std::string& part, const std::shared_ptr<net::ObjectStore>& store) {
  if (is_remote(part)) return far_files_of(part, store);
  refuse_companion(part);
  std::vector<Path> files = near_files_of(part);
  if (files.empty() && is_pattern(part)) throw DataError(fmt::format("{}: no record file has such a name", part));
  if (files.empty()) refuse_missing(part);
  return files;
}

// Whether both are there, and the same file.
bool is_same_file(const Path& a, const Path& b) {
  std::error_code none;
  return std::filesystem::equivalent(a, b, none);
}

// Refuses files of a folder that a run of `data pack` has yet to make: one that is missing, where `part` is the prefix
// of shards or a pattern that it fits, and one that is there still of an earlier set. `made`: as of
// find_records_to_pack(), or empty.
void require_finished(const std::string& part, const std::vector<Path>& files, const Path& made) {
  const bool are_shards =
      std::ranges::any_of(files, [&](const Path& file) { return shard_number(part, file).has_value(); });
  std::map<std::string, std::vector<Path>> known;  // by the prefix of the document, which all shards share
  for (const Path& file : files) {
    for (const std::string& prefix : prefixes_of(file)) {
      const auto [entry, is_new] = known.try_emplace(prefix);
      if (is_new && (made.empty() || !is_same_file(set_document_path(prefix), set_document_path(made.string())))) {
        entry->second = advice_of([&] {
          const std::optional<Json> document = read_set_document(prefix, nullptr);
          return document ? unfinished_in(*document, file.parent_path()) : std::vector<Path>();
        });
      }
      for (const Path& unfinished : entry->second) {
        const bool is_meant =
            unfinished == file || (are_shards && shard_number(part, unfinished)) || fits_pattern(unfinished, part);
        if (is_meant) refuse_unfinished(unfinished, prefix);
      }
    }
  }
}

// Blanks behind a comma belong to no name, unless a file has it.
std::string without_blanks(const std::string& part) {
  const std::string name(trim(part));
  const bool is_as_given = name == part || (!is_remote(name) && !near_files_of(part).empty());
  return is_as_given ? part : name;
}

std::vector<Path> find_finished(const std::string& spec, const std::shared_ptr<net::ObjectStore>& store,
                                const Path& made) {
  const bool has_comma = spec.find(',') != spec.npos;
  std::vector<Path> files;
  if (has_comma && !is_remote(spec)) files = near_files_of(spec);  // whose own name or folder may hold it
  if (!files.empty()) require_finished(spec, files, made);
  if (!files.empty()) return files;
  for (const std::string& given : split(spec, ',')) {
    const std::string part = has_comma ? without_blanks(given) : given;
    if (part.empty()) throw UsageError(fmt::format("\"{}\" holds an empty name", spec));
    const std::vector<Path> found = files_of(part, store);
    if (!is_remote(part)) require_finished(part, found, made);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace

std::vector<Path> find_records(const std::string& spec, const std::shared_ptr<net::ObjectStore>& store) {
  return find_finished(spec, store, {});
}

std::vector<Path> find_records_to_pack(const std::string& spec, const Path& made) {
  return find_finished(spec, {}, made);
}

}  // namespace dtrain::data
