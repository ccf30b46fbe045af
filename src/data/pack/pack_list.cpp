#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "pack_sources.hpp"
#include "pictures.hpp"

namespace dtrain::data {
namespace {

struct FolderContent {
  std::vector<std::string> pictures, folders, others;  // names, in their order
};

FolderContent read_folder(const Path& folder) {
  FolderContent content;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory()) content.folders.push_back(name);
    if (entry.is_regular_file()) (is_picture(entry.path()) ? content.pictures : content.others).push_back(name);
  }
  if (error) throw DataError(fmt::format("{}: cannot list the folder: {}", folder.string(), error.message()));
  std::sort(content.pictures.begin(), content.pictures.end());
  std::sort(content.folders.begin(), content.folders.end());
  std::sort(content.others.begin(), content.others.end());
  return content;
}

void skip(const std::vector<std::string>& names, const Path& below, PackList& list) {
  for (const std::string& name : names) {
    const std::string ending = Path(name).extension().string();
    list.skipped[ending.empty() ? "no ending" : ending].push_back((below / name).string());
  }
}

// The order of os.walk with names sorted: a folder's own pictures, then its folders.
void walk(const Path& below, int depth, PackList& list) {
  constexpr int kDeepest = 64;
  if (depth > kDeepest) {
    throw DataError(fmt::format("{}: more than {} folders inside each other", (list.root / below).string(), kDeepest),
                    "does a symbolic link lead back?");
  }
  const FolderContent content = read_folder(list.root / below);
  skip(content.others, below, list);
  if (!content.pictures.empty()) list.classes.push_back(below.empty() ? "." : below.string());
  const auto label = static_cast<float>(list.classes.size()) - 1;
  for (const std::string& name : content.pictures) {
    list.items.push_back({list.items.size(), {label}, (below / name).string()});
  }
  for (const std::string& name : content.folders) walk(below / name, depth + 1, list);
}

// IF/train/CLASS/... beside IF/val/CLASS/...
struct SplitFolders {
  std::string train, validation;
};

std::optional<SplitFolders> split_folders(const Path& folder) {
  const std::vector<std::string> folders = read_folder(folder).folders;
  const auto find = [&](std::initializer_list<std::string_view> names) -> std::string {
    for (const std::string_view name : names) {
      if (std::ranges::find(folders, name) != folders.end()) return std::string(name);
    }
    return {};
  };
  const SplitFolders found{find({"train", "training"}), find({"val", "valid", "validation"})};
  if (found.train.empty() || found.validation.empty()) return {};
  const bool has_classes = !read_folder(folder / found.train).folders.empty();
  if (has_classes && !read_folder(folder / found.validation).folders.empty()) return found;
  return {};
}

// The classes of a split, named without it: train/cat and val/cat are both "cat".
PackList list_split(const Path& root, const std::string& split) {
  PackList list;
  list.root = root;
  walk(split, 0, list);
  for (std::string& name : list.classes) name = Path(name).lexically_relative(split).string();
  return list;
}

void add_split(PackList split, bool validates, PackList& whole) {
  for (PackItem& item : split.items) {
    const std::string& name = split.classes[static_cast<std::size_t>(item.labels.front())];
    if (name == ".") {
      whole.skipped["beside the folders of the classes"].push_back(item.file);
      continue;
    }
    const auto label = std::ranges::lower_bound(whole.classes, name) - whole.classes.begin();
    whole.items.push_back({whole.items.size(), {static_cast<float>(label)}, item.file, 0, validates});
  }
  for (auto& [reason, files] : split.skipped) {
    std::vector<std::string>& all = whole.skipped[reason];
    all.insert(all.end(), files.begin(), files.end());
  }
}

PackList list_splits(const Path& folder, const SplitFolders& splits) {
  PackList train = list_split(folder, splits.train), validation = list_split(folder, splits.validation);
  PackList whole;
  whole.root = folder;
  whole.is_split = true;
  std::set<std::string> names(train.classes.begin(), train.classes.end());
  names.insert(validation.classes.begin(), validation.classes.end());
  names.erase(".");
  whole.classes.assign(names.begin(), names.end());
  const FolderContent top = read_folder(folder);
  skip(top.others, {}, whole);
  for (const std::string& name : top.pictures) whole.skipped["beside the folders of the classes"].push_back(name);
  for (const std::string& name : top.folders) {
    if (name != splits.train && name != splits.validation)
      whole.skipped["a folder that is neither of training nor of validation"].push_back(name);
  }
  add_split(std::move(train), false, whole);
  add_split(std::move(validation), true, whole);
  return whole;
}

}  // namespace

bool is_picture(const Path& file) {
  constexpr std::array<std::string_view, 3> kEndings{".jpg", ".jpeg", ".png"};
  std::string ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

PackList list_folder(const Path& folder) {
  if (const auto splits = split_folders(folder)) return list_splits(folder, *splits);
  PackList list;
  list.root = folder;
  walk({}, 0, list);
  return list;
}

// "id<TAB>label...<TAB>file", as im2rec writes and reads.
PackList parse_list(std::string_view text, const Path& lst, const Path& root) {
  PackList list;
  list.root = root;
  std::size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const std::vector<std::string> parts = split(trim(line), '\t');
    if (parts.size() == 1 && parts.front().empty()) continue;
    const auto id = parse_integer(parts.front());
    PackItem item{static_cast<std::uint64_t>(id.value_or(0)), {}, parts.back()};
    bool good = parts.size() >= 3 && id && *id >= 0 && !item.file.empty();
    for (std::size_t i = 1; good && i + 1 < parts.size(); ++i) {
      const auto label = parse_number(parts[i]);
      good = label.has_value();
      item.labels.push_back(static_cast<float>(label.value_or(0)));
    }
    if (!good) {
      throw DataError(fmt::format("{}: line {}: not \"id<TAB>label...<TAB>file\"", lst.string(), number),
                      "one picture a line, with tabs between");
    }
    list.items.push_back(std::move(item));
  }
  return list;
}

PackList list_images(const Path& source, const Path& root, CocoLabels labels) {
  if (std::filesystem::is_directory(source)) return list_folder(source);
  if (!std::filesystem::exists(source)) {
    throw DataError(fmt::format("{}: no such folder or file", source.string()),
                    "name a folder of class folders, a .lst file or a COCO JSON file");
  }
  const Path beside = root.empty() ? source.parent_path() : root;
  if (source.extension() == ".lst") return parse_list(read_file(source), source, beside);
  if (source.extension() == ".json") {
    return parse_coco(read_file(source), source, beside, labels);
  }
  throw UsageError(fmt::format("{}: neither a folder nor a .lst or .json file", source.string()));
}

}  // namespace dtrain::data
