#include <dtrain/data/class_names.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/data/remote.hpp>

#include "set_document.hpp"

namespace dtrain::data {
namespace {

// The name of a set whose shard this may be: p_train of p_train_3.rec, else the name without its ending.
std::string without_shard(const Path& rec) {
  std::string stem = Path(rec).replace_extension().string();
  const std::size_t mark = stem.rfind('_');
  if (mark == stem.npos || mark + 1 == stem.size()) return stem;
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const bool is_number = std::all_of(stem.begin() + static_cast<std::ptrdiff_t>(mark) + 1, stem.end(), is_digit);
  return is_number ? stem.substr(0, mark) : stem;
}

// p_train_3 is the shard 3 of the split p_train of p: each may be the PREFIX that was packed.
std::vector<std::string> prefixes_of(const Path& rec) {
  std::vector<std::string> prefixes{Path(rec).replace_extension().string()};
  const std::string set = without_shard(rec);
  if (set != prefixes.back()) prefixes.push_back(set);
  if (const auto packed = without_split(set)) prefixes.push_back(*packed);
  return prefixes;
}

// The journal of `data pack` names the files that it is about: others of the prefix are of an earlier set, whose
// classes may have been others. `data prepare` and people write names alone.
bool is_about(const Json& document, const Path& rec) {
  const Json* plan = document.find("plan");
  const Json* files = document.find("files");
  if (!files || (plan && *plan == Json("prepare"))) return true;
  return std::ranges::any_of(files->as_array(),
                             [&](const Json& each) { return each.at("file").as_string() == rec.filename().string(); });
}

std::vector<std::string> names_for(const Path& rec, const Json& document) {
  std::vector<std::string> names;
  if (!is_about(document, rec)) return names;
  if (const Json* classes = document.find("classes")) {
    for (const Json& name : classes->as_array()) names.push_back(name.as_string());
  }
  return names;
}

// Looks up the names of files. A set may have thousands of shards behind a URL, so that what was asked for one shard is
// not asked again for the next.
class NamesReader {
 public:
  explicit NamesReader(const std::shared_ptr<net::ObjectStore>& store) : store_(store.get()) {}

  // Records are whole without their names, so a file that cannot be read names nothing.
  std::vector<std::string> names_of(const Path& rec) {
    if (is_remote(rec) && !store_) return {};
    try {
      return look_up(rec);
    } catch (const DataError&) {
      return {};
    } catch (const RemoteError&) {
      return {};
    }
  }

 private:
  std::vector<std::string> look_up(const Path& rec) {
    const auto known = documents_.find(without_shard(rec));
    if (known != documents_.end() && known->second && is_about(*known->second, rec))
      return names_for(rec, *known->second);
    for (const std::string& prefix : prefixes_of(rec)) {
      if (const auto& document = document_of(prefix)) return names_for(rec, *document);
    }
    return {};
  }

  // nullopt: there is none.
  const std::optional<Json>& document_of(const std::string& prefix) {
    const auto known = documents_.find(prefix);
    if (known != documents_.end()) return known->second;
    return documents_.emplace(prefix, read_set_document(prefix, store_)).first->second;
  }

  net::ObjectStore* store_;
  std::map<std::string, std::optional<Json>> documents_;  // by the prefix
};

}  // namespace

std::vector<std::string> class_names(std::span<const Path> files, const std::shared_ptr<net::ObjectStore>& store) {
  NamesReader reader(store);
  std::vector<std::string> names;
  Path named;
  for (const Path& file : files) {
    const std::vector<std::string> found = reader.names_of(file);
    require_same_classes({named.string(), names}, {file.string(), found});
    if (!names.empty() || found.empty()) continue;
    names = found;
    named = file;
  }
  return names;
}

void require_same_classes(const ClassList& expected, const ClassList& found) {
  if (expected.names.empty() || found.names.empty()) return;
  const auto name_in = [](const ClassList& list, std::size_t label) {
    return label < list.names.size() ? fmt::format("\"{}\"", list.names[label]) : std::string("missing");
  };
  for (std::size_t label = 0; label < std::max(expected.names.size(), found.names.size()); ++label) {
    const std::string wanted = name_in(expected, label), here = name_in(found, label);
    if (wanted == here) continue;
    throw DataError(
        fmt::format("{}: class {} is {}, but in {} it is {}", found.where, label, here, expected.where, wanted),
        "labels count the classes in their order, so both sides need the same ones: pack the pictures again with the "
        "classes of the other side, which are the folders, or the categories of a COCO file in the order of their ids");
  }
}

void require_class_count(int classes, const ClassList& found) {
  if (found.names.empty() || std::ssize(found.names) == classes) return;
  throw DataError(fmt::format("{}: names {} classes, but the checkpoint has {}, without names", found.where,
                              found.names.size(), classes),
                  "the same label means another class on each side: choose data with the classes that the checkpoint "
                  "was trained on, or begin a training on these data with its weights: setting 'pretrained'");
}

std::string label_text(std::int64_t label, std::span<const std::string> names) {
  const bool has_name = label >= 0 && label < std::ssize(names);
  return has_name ? fmt::format("{} {}", label, names[static_cast<std::size_t>(label)]) : fmt::format("{}", label);
}

}  // namespace dtrain::data
