#include <dtrain/data/class_names.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/data/remote.hpp>

namespace dtrain::data {
namespace {

// p_train_3 is the shard 3 of the split p_train of p: each may be the PREFIX that was packed.
std::vector<std::string> prefixes_of(const Path& rec) {
  std::string stem = Path(rec).replace_extension().string();
  std::vector<std::string> prefixes{stem};
  const auto shorten = [&](std::size_t length) {
    stem = stem.substr(0, length);
    prefixes.push_back(stem);
  };
  const std::size_t mark = stem.rfind('_');
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (mark != stem.npos && mark + 1 < stem.size() &&
      std::all_of(stem.begin() + static_cast<std::ptrdiff_t>(mark) + 1, stem.end(), is_digit))
    shorten(mark);
  for (const std::string_view split : {"_train", "_val", "_test"}) {
    if (stem.ends_with(split)) {
      shorten(stem.size() - split.size());
      break;
    }
  }
  return prefixes;
}

// nullopt: the file is not there.
std::optional<std::string> content_of(const Path& file, net::ObjectStore* store) {
  if (!is_remote(file)) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) return std::nullopt;
    return read_file(file);
  }
  const auto state = store->find(file.string());
  if (!state) return std::nullopt;
  return store->content(file.string(), *state);
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

std::vector<std::string> names_in(const std::string& content, const Path& file, const Path& rec) {
  std::vector<std::string> names;
  const Json document = Json::parse(content, file.string());
  if (!is_about(document, rec)) return names;
  if (const Json* classes = document.find("classes")) {
    for (const Json& name : classes->as_array()) names.push_back(name.as_string());
  }
  return names;
}

std::vector<std::string> names_beside(const Path& rec, net::ObjectStore* store) {
  for (const std::string& prefix : prefixes_of(rec)) {
    const Path file = prefix + ".pack.json";
    if (const auto content = content_of(file, store)) return names_in(*content, file, rec);
  }
  return {};
}

}  // namespace

// Records are whole without their names, so a file that cannot be read names nothing.
std::vector<std::string> class_names(std::span<const Path> files, const std::shared_ptr<net::ObjectStore>& store) {
  if (files.empty() || (is_remote(files.front()) && !store)) return {};
  try {
    return names_beside(files.front(), store.get());
  } catch (const DataError&) {
    return {};
  } catch (const RemoteError&) {
    return {};
  }
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
