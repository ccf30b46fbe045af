#include <dtrain/data/class_names.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/data/remote.hpp>

#include "name_forms.hpp"
#include "set_document.hpp"

namespace dtrain::data {
namespace {

// What a list of files says of this one; null: nothing.
const Json* entry_of(const Path& rec, const Json& files) {
  const Json::Array& all = files.as_array();
  const auto entry = std::ranges::find_if(
      all, [&](const Json& each) { return each.at("file").as_string() == rec.filename().string(); });
  return entry == all.end() ? nullptr : &*entry;
}

// nullopt: it is not there, or behind a URL.
std::optional<std::uintmax_t> size_here(const Path& rec) {
  std::error_code error;
  const std::uintmax_t bytes = is_remote(rec) ? 0 : std::filesystem::file_size(rec, error);
  return is_remote(rec) || error ? std::nullopt : std::optional(bytes);
}

std::uintmax_t bytes_in(const Json& entry) { return static_cast<std::uintmax_t>(entry.at("bytes").as_integer()); }

// The journal of `data pack` names the files that it is about: others of the prefix are of an earlier set, whose
// classes may have been others. So is a file of another size: a run with another prefix replaced it. `data prepare` and
// people write names alone.
bool is_about(const Json& document, const Path& rec) {
  const Json* plan = document.find("plan");
  const Json* files = document.find("files");
  if (!files || (plan && *plan == Json("prepare"))) return true;
  const Json* const entry = entry_of(rec, *files);
  if (!entry || !entry->find("bytes")) return entry != nullptr;
  return size_here(rec).value_or(bytes_in(*entry)) == bytes_in(*entry);
}

// Whether the file is there as this set had it: a run that was killed may have replaced it and not said so.
bool holds_unchanged(const Json& set, const Path& rec) {
  const Json* const entry = entry_of(rec, set.at("files"));
  return entry && size_here(rec) == bytes_in(*entry);
}

// What the document says of the set that the file is of; null: nothing. While `data pack` replaces files, and where
// that was interrupted, the journal keeps the names of the classes that those have which are not replaced yet.
const Json* set_of(const Path& rec, const Json& document) {
  if (is_about(document, rec)) return &document;
  const Json* const sets = document.find("earlier_sets");
  if (!sets || is_remote(rec)) return nullptr;
  const auto set = std::ranges::find_if(sets->as_array(), [&](const Json& each) { return holds_unchanged(each, rec); });
  return set == sets->as_array().end() ? nullptr : &*set;
}

// nullopt: the document is about other files.
std::optional<std::vector<std::string>> names_for(const Path& rec, const Json& document) {
  const Json* const set = set_of(rec, document);
  if (!set) return std::nullopt;
  std::vector<std::string> names;
  if (const Json* classes = set->find("classes")) {
    for (const Json& name : classes->as_array()) names.push_back(name.as_string());
  }
  return names;
}

std::filesystem::file_time_type time_of_change(const Path& file) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(file, error);
  return error ? std::filesystem::file_time_type::min() : time;
}

// Looks up the names of files. A document is asked for once, also where it is missing or cannot be read.
class NamesReader {
 public:
  explicit NamesReader(const std::shared_ptr<net::ObjectStore>& store) : store_(store.get()) {}

  std::vector<std::string> names_of(const Path& rec) {
    if (is_remote(rec) && !store_) return {};
    std::optional<std::vector<std::string>> newest;
    std::filesystem::file_time_type changed;
    for (const std::string& prefix : prefixes_of(rec)) {
      const std::optional<Json>& document = document_of(prefix);
      if (!document) continue;
      auto names = advice_of([&] { return names_for(rec, *document); });
      if (!names) continue;
      if (is_remote(rec)) return *names;  // a look at another document is a request
      const auto time = time_of_change(set_document_path(prefix));
      if (newest && time <= changed) continue;
      newest = std::move(names);
      changed = time;
    }
    return newest.value_or(std::vector<std::string>());
  }

 private:
  // nullopt: there is none that can be read.
  const std::optional<Json>& document_of(const std::string& prefix) {
    const auto known = documents_.find(prefix);
    if (known != documents_.end()) return known->second;
    return documents_.emplace(prefix, advice_of([&] { return read_set_document(prefix, store_); })).first->second;
  }

  net::ObjectStore* store_;
  std::map<std::string, std::optional<Json>> documents_;  // by the prefix
};

// The first number that only one of the lists names, or that they name differently.
std::size_t first_difference(const ClassList& a, const ClassList& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a.names, b.names).in1 - a.names.begin());
}

[[noreturn]] void refuse_class(const ClassList& expected, const ClassList& found, std::size_t label) {
  const bool is_in_both = label < std::min(expected.names.size(), found.names.size());
  const bool looks_equal = is_in_both && are_forms_of_one_name(expected.names[label], found.names[label]);
  const auto name_in = [&](const ClassList& list) {
    if (label >= list.names.size()) return std::string("missing");
    return fmt::format("\"{}\"", looks_equal ? escaped_bytes(list.names[label]) : list.names[label]);
  };
  throw DataError(
      fmt::format("{}: class {} is {}, but in {} it is {}", shown_files(found.where), label, name_in(found),
                  shown_files(expected.where), name_in(expected)),
      looks_equal
          ? "the names look the same, and Unicode writes their letters with marks in two forms: give the folders "
            "of both sides the same form, and pack the pictures again"
          : "labels count the classes in their order, so both sides need the same ones: pack the pictures again with "
            "the classes of the other side, which are the folders, or the categories of a COCO file in the order of "
            "their ids");
}

}  // namespace

std::vector<std::string> class_names(std::span<const Path> files, const std::shared_ptr<net::ObjectStore>& store) {
  NamesReader reader(store);
  std::vector<std::string> names;
  Path named;
  for (const Path& file : files) {
    const std::vector<std::string> found = reader.names_of(file);
    const ClassList before{named.string(), names}, here{file.string(), found};
    const std::size_t label = first_difference(before, here);
    if (label < std::min(names.size(), found.size())) refuse_class(before, here, label);
    if (found.size() <= names.size()) continue;
    names = found;
    named = file;
  }
  return names;
}

std::vector<std::string> class_names_to_show(std::span<const Path> files,
                                             const std::function<void(const std::string&)>& warn) try {
  return class_names(files);
} catch (const DataError& contradiction) {
  warn(fmt::format("{}; the classes are shown without names", contradiction.what()));
  return {};
}

void require_same_classes(const ClassList& expected, const ClassList& found) {
  if (expected.names.empty() || found.names.empty()) return;
  const std::size_t label = first_difference(expected, found);
  if (label < std::max(expected.names.size(), found.names.size())) refuse_class(expected, found, label);
}

void require_class_count(int classes, const ClassList& found) {
  if (found.names.empty() || std::ssize(found.names) == classes) return;
  throw DataError(fmt::format("{}: names {} classes, but the checkpoint has {}, without names",
                              shown_files(found.where), found.names.size(), classes),
                  "the same label means another class on each side: choose data with the classes that the checkpoint "
                  "was trained on, or begin a training on these data with its weights: setting 'pretrained'");
}

std::string label_text(std::int64_t label, std::span<const std::string> names) {
  const bool has_name = label >= 0 && label < std::ssize(names);
  return has_name ? fmt::format("{} {}", label, names[static_cast<std::size_t>(label)]) : fmt::format("{}", label);
}

}  // namespace dtrain::data
