#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_set>

#include <dtrain/base/csv.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "archive/safe_names.hpp"
#include "checked_labels.hpp"
#include "listed_once.hpp"
#include "pack_sources.hpp"
#include "pictures.hpp"
#include "split_folders.hpp"

namespace dtrain::data {
namespace {

struct FolderContent {
  std::vector<std::string> pictures, folders, others, hidden, lost, back;  // names, in their order
};

// Whether what the link leads to is one of the folders on the way from `root` to `below`, or contains one: a walk that
// followed the link would come back to the link.
bool leads_back(const Path& link, const Path& root, const Path& below) {
  std::error_code error;
  const Path target = std::filesystem::canonical(link, error);
  const auto lies_in_target = [&](const Path& folder) {
    const Path inside = std::filesystem::weakly_canonical(folder, error).lexically_relative(target);
    return !inside.empty() && *inside.begin() != "..";
  };
  Path folder = root.empty() ? Path(".") : root;
  if (lies_in_target(folder)) return true;
  return std::ranges::any_of(below, [&](const Path& part) { return lies_in_target(folder /= part); });
}

FolderContent read_folder(const Path& root, const Path& below) {
  const Path folder = root / below;
  FolderContent content;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (is_of_other_programs(name)) {
      content.hidden.push_back(name);
      continue;
    }
    const bool is_meant = is_picture(entry->path());
    std::error_code gone;
    if (entry->is_directory(gone)) {
      const bool is_back = entry->is_symlink(gone) && leads_back(entry->path(), root, below);
      (is_back ? content.back : content.folders).push_back(name);
    } else if (entry->is_regular_file(gone)) {
      (is_meant ? content.pictures : content.others).push_back(name);
    } else if (gone || !lost_link(entry->path()).empty()) {
      (is_meant ? content.pictures : content.lost).push_back(name);  // reading the picture says what is wrong
    }
  }
  if (error) throw DataError(fmt::format("{}: cannot list the folder: {}", folder.string(), error.message()));
  for (auto* names :
       {&content.pictures, &content.folders, &content.others, &content.hidden, &content.lost, &content.back})
    std::ranges::sort(*names);
  return content;
}

// Documents and arrays that data sets keep beside each picture, and what cameras and photographers' programs keep
// there: edits (.aae, .xmp), and thumbnails of films and raw files (.thm), which are small JPEG files and would be
// taken for pictures. There are as many of them as pictures, so that opening each one would take long where files are
// far away.
bool is_companion(const Path& file) {
  constexpr std::array<std::string_view, 17> kEndings{".aae", ".cls", ".csv", ".html", ".json", ".mat",
                                                      ".md",  ".npy", ".npz", ".pts",  ".thm",  ".tsv",
                                                      ".txt", ".xml", ".xmp", ".yaml", ".yml"};
  return std::ranges::find(kEndings, lower_case(file.extension().string())) != kEndings.end();
}

// 1.jpg~ and 1.jpg_original beside 1.jpg are what other programs keep of it. `pictures` are in order.
bool is_copy_of_one(const std::string& name, const std::vector<std::string>& pictures) {
  for (std::size_t size = name.size() - 1; size > 0; --size) {
    if (std::ranges::binary_search(pictures, name.substr(0, size))) return true;
  }
  return false;
}

// Endings such as .jfif, .00 and none at all do not say what is in a file.
void take_pictures_by_content(const Path& folder, FolderContent& content) {
  const auto is_other = [&](const std::string& name) {
    const Path file = folder / name;
    return is_companion(file) || is_unread_picture(file.extension().string()) || !begins_as_picture(file) ||
           is_copy_of_one(name, content.pictures);
  };
  const auto found = std::stable_partition(content.others.begin(), content.others.end(), is_other);
  content.pictures.insert(content.pictures.end(), found, content.others.end());
  content.others.erase(found, content.others.end());
  std::ranges::sort(content.pictures);
}

void skip(const FolderContent& content, const Path& below, PackList& list) {
  for (const std::string& name : content.others)
    list.skipped[skipped_by_ending(name)].push_back((below / name).string());
  for (const std::string& name : content.hidden) list.skipped[kHidden].push_back((below / name).string());
  for (const std::string& name : content.lost) list.skipped[kLostLink].push_back((below / name).string());
  for (const std::string& name : content.back) list.skipped[kLeadsBack].push_back((below / name).string());
}

// Whether a link leads to a folder that the walk from `start` (without links) comes to by itself: its pictures would be
// of two classes, that of the folder and that of the link.
bool leads_to_walked(const Path& link, const Path& start) {
  std::error_code error;
  if (start.empty() || !std::filesystem::is_symlink(link, error)) return false;
  const Path target = std::filesystem::canonical(link, error);
  const auto behind = error ? std::nullopt : path_behind(target, start);
  return behind && !behind->empty() && !is_hidden_path(*behind);
}

// The order of os.walk with names sorted: a folder's own pictures, then its folders. `start`: where the walk began,
// without links. False: there is no picture in it or below it.
bool walk(const Path& start, const Path& below, int depth, PackList& list) {
  constexpr int kDeepest = 64;
  if (depth > kDeepest) {
    throw DataError(fmt::format("{}: more than {} folders inside each other", (list.root / below).string(), kDeepest),
                    "name one of the inner folders");
  }
  FolderContent content = read_folder(list.root, below);
  take_pictures_by_content(list.root / below, content);
  skip(content, below, list);
  if (!content.pictures.empty()) list.classes.push_back(below.empty() ? "." : below.string());
  const auto label = static_cast<float>(list.classes.size()) - 1;
  for (const std::string& name : content.pictures) {
    list.items.push_back({list.items.size(), {label}, (below / name).string()});
  }
  bool has_pictures = !content.pictures.empty();
  const std::size_t named = list.empty_folders.size();
  for (const std::string& name : content.folders) {
    if (leads_to_walked(list.root / below / name, start)) {
      list.skipped[kPackedItself].push_back((below / name).string());
    } else if (walk(start, below / name, depth + 1, list)) {
      has_pictures = true;
    } else {
      list.empty_folders.push_back((below / name).string());
    }
  }
  if (!has_pictures) list.empty_folders.resize(named);  // the folder stands for those in it
  return has_pictures;
}

// The folder `below` and all below it.
void walk_from(const Path& below, PackList& list) {
  std::error_code error;
  const Path folder = list.root / below;
  walk(std::filesystem::canonical(folder.empty() ? Path(".") : folder, error), below, 0, list);
}

// The classes of a split, named without it: train/cat and val/cat are both "cat".
PackList list_split(const Path& root, const Path& split) {
  PackList list;
  list.root = root;
  walk_from(split, list);
  for (std::string& name : list.classes) name = Path(name).lexically_relative(split).string();
  return list;
}

// What the folder holds besides the splits, in it and in the folders that lead to them.
void skip_beside_splits(const Path& folder, const SplitFolders& splits, PackList& whole) {
  Path below;
  const auto skip_in = [&](const FolderContent& content) {
    skip(content, below, whole);
    for (const std::string& name : content.pictures) whole.skipped[kBesideClasses].push_back((below / name).string());
  };
  for (const Path& next : splits.below) {
    skip_in(read_folder(folder, below));
    below /= next;
  }
  const FolderContent last = read_folder(folder, below);
  skip_in(last);
  skip_other_folders(last.folders, splits, whole);
}

PackList list_splits(const Path& folder, const SplitFolders& splits) {
  std::vector<PackList> lists;
  for (const SplitFolder& each : splits.folders) lists.push_back(list_split(folder, splits.below / each.name));
  PackList whole;
  whole.root = folder;
  whole.of_folder = true;
  skip_beside_splits(folder, splits, whole);
  join_splits(lists, splits.folders, whole);
  return whole;
}

}  // namespace

bool is_picture(const Path& file) {
  constexpr std::array<std::string_view, 9> kEndings{".jpg",  ".jpeg", ".jpe", ".jfif", ".png",
                                                     ".webp", ".bmp",  ".tif", ".tiff"};
  return std::ranges::find(kEndings, lower_case(file.extension().string())) != kEndings.end();
}

// Raw files of cameras, and the slides of microscopes' scanners, often begin as TIFF files do: with a thumbnail, or
// with a slide of billions of pixels, for the first image.
bool is_unread_picture(std::string_view ending) {
  constexpr auto kEndings = std::to_array<std::string_view>(
      {".gif", ".heic", ".heif", ".hif", ".avif", ".jp2", ".j2k",  ".jxl", ".svg", ".psd",  ".psb",
       ".exr", ".tga",  ".ppm",  ".pgm", ".pbm",  ".pnm",  // other programs write them
       ".cr2", ".cr3",  ".crw",  ".nef", ".nrw",  ".arw", ".sr2",  ".srf", ".dng", ".gpr",  ".pef",
       ".srw", ".raf",  ".orf",  ".rw2", ".rwl",  ".x3f", ".mrw",  ".3fr", ".fff", ".iiq",  ".erf",
       ".kdc", ".dcr",  ".k25",  ".mef", ".mos",  ".svs", ".ndpi", ".scn", ".bif", ".mrxs", ".vms"});
  return std::ranges::find(kEndings, lower_case(ending)) != kEndings.end();
}

std::string skipped_by_ending(const Path& file) {
  const std::string ending = file.extension().string();
  return ending.empty() ? "no ending" : ending;
}

PackList list_folder(const Path& folder) {
  const SplitFolders splits =
      find_splits(folder, [&](const Path& below) { return read_folder(folder, below).folders; });
  if (!splits.folders.empty()) return list_splits(folder, splits);
  PackList list;
  list.root = folder;
  list.of_folder = true;
  walk_from({}, list);
  settle_classes(folder, list.classes);
  return list;
}

namespace {

// Calls read(), and puts before what it throws where in the source that is.
template <typename Read>
void read_line(const Path& source, std::size_t line, const Read& read) try {
  read();
} catch (const DataError& error) {
  throw DataError(fmt::format("{}: line {}: {}", source.string(), line, error.what()), error.hint());
}

}  // namespace

// "id<TAB>label...<TAB>file", as im2rec writes and reads.
PackList parse_list(std::string_view text, const Path& lst, const Path& root) {
  PackList list;
  list.root = root;
  list.of_rows = true;
  std::size_t number = 0;
  std::vector<std::size_t> lines;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const std::vector<std::string> parts = split(trim(line), '\t');
    if (parts.size() == 1 && parts.front().empty()) continue;
    const auto id = parse_integer(parts.front());
    PackItem item{static_cast<std::uint64_t>(id.value_or(0)), {}, parts.back()};
    bool good = parts.size() >= 3 && id && *id >= 0 && !item.file.empty();
    std::vector<double> labels;
    for (std::size_t i = 1; good && i + 1 < parts.size(); ++i) {
      const auto label = parse_number(parts[i]);
      good = label.has_value();
      labels.push_back(label.value_or(0));
    }
    if (!good) {
      throw DataError(fmt::format("{}: line {}: not \"id<TAB>label...<TAB>file\"", lst.string(), number),
                      "one picture a line, with tabs between");
    }
    read_line(lst, number, [&] { item.labels = stored_labels(labels); });
    leave_out_bad_boxes(item, list);
    list.items.push_back(std::move(item));
    lines.push_back(number);
  }
  refuse_different_labels(lst.string(), lines, list);
  return list;
}

namespace {

// A header names no file; every other row does, or names one that is missing, which packing reports. The name of a
// column may have a point, such as "file.name" in tables that R writes, but not the ending of a picture.
bool is_header(const CsvRow& row, const Path& root) {
  std::error_code error;
  const Path name = trim(row.fields.front());
  return !std::filesystem::exists(root / name, error) && !is_picture(name) &&
         !is_unread_picture(name.extension().string());
}

// "3", also written "3.0", as pandas does with a column that has gaps.
std::optional<std::int64_t> class_number(std::string_view text) {
  const std::size_t point = text.find('.');
  const bool is_whole = point < text.size() - 1 && text.find_first_not_of('0', point + 1) == text.npos;
  const auto number = parse_integer(is_whole ? text.substr(0, point) : text);
  return number && *number >= 0 ? number : std::nullopt;
}

bool is_blank(const CsvRow& row) {
  return std::ranges::all_of(row.fields, [](const std::string& field) { return trim(field).empty(); });
}

// Labels that are all whole numbers are the classes themselves; others are names, numbered in their order.
void number_classes(const Path& csv, const std::vector<std::string>& labels, const std::vector<std::size_t>& lines,
                    PackList& list) {
  const bool numbers = std::ranges::all_of(labels, [](const auto& text) { return class_number(text).has_value(); });
  if (!numbers) {
    const std::set<std::string> names(labels.begin(), labels.end());
    list.classes.assign(names.begin(), names.end());
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto label = numbers ? class_number(labels[i]).value()
                               : std::ranges::lower_bound(list.classes, labels[i]) - list.classes.begin();
    read_line(csv, lines[i], [&] { list.items[i].labels = {stored_label(static_cast<double>(label))}; });
  }
}

}  // namespace

PackList parse_labels(std::string_view text, const Path& csv, const Path& root) {
  constexpr const char* kRows = "one picture a line: its path below the folder, a comma, its label";
  PackList list;
  list.root = root;
  list.of_folder = list.of_rows = true;
  std::vector<std::string> labels;
  std::vector<std::size_t> lines;
  std::vector<CsvRow> rows = parse_csv(text, csv.string());
  std::erase_if(rows, is_blank);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::vector<std::string>& fields = rows[i].fields;
    if (fields.size() != 2 || trim(fields[0]).empty() || trim(fields[1]).empty())
      throw DataError(fmt::format("{}: line {}: not \"path,label\"", csv.string(), rows[i].line), kRows);
    if (i == 0 && is_header(rows[i], root)) {
      list.header_row = join(fields, ",");
      continue;
    }
    list.items.push_back({list.items.size(), {}, std::string(trim(fields[0]))});
    labels.emplace_back(trim(fields[1]));
    lines.push_back(rows[i].line);
  }
  if (list.items.empty()) {
    const std::string header =
        list.header_row.empty() ? "" : fmt::format(" behind the names of the columns, {}", list.header_row);
    throw DataError(fmt::format("{}: no row \"path,label\"{}", csv.string(), header), kRows);
  }
  number_classes(csv, labels, lines, list);
  refuse_different_labels(csv.string(), lines, list);
  return list;
}

namespace {

constexpr int kMostFoldersSeen = 10'000;  // a root may hold far more than what is packed

// Adds those below the root that hold pictures and none of which is in `named`.
void find_unnamed(const Path& root, const Path& below, const std::set<Path>& named, int& seen,
                  std::vector<std::string>& unnamed) try {
  if (++seen > kMostFoldersSeen) return;
  const FolderContent content = read_folder(root, below);
  if (!content.pictures.empty() && !named.contains(below)) unnamed.push_back(below.empty() ? "." : below.string());
  for (const std::string& name : content.folders) {
    std::error_code error;
    if (!std::filesystem::is_symlink(root / below / name, error))
      find_unnamed(root, below / name, named, seen, unnamed);
  }
} catch (const DataError&) {  // none of its pictures was asked for
}

}  // namespace

// Without opening any of them, as pictures of an archive are known. Folders that no row names are told by their names
// alone: they may hold millions of files.
void count_unlabelled(PackList& list) {
  std::unordered_set<std::string> named;
  std::set<Path> folders;  // below the root
  for (const PackItem& item : list.items) {
    const Path file = Path(item.file).lexically_normal();
    named.insert((list.root / file).string());
    folders.insert(file.parent_path());
  }
  for (const Path& below : folders) {
    try {
      for (const std::string& name : read_folder(list.root, below).pictures)
        list.unlabelled += named.contains((list.root / below / name).string()) ? 0 : 1;
    } catch (const DataError&) {  // reading their pictures says what is wrong
    }
  }
  int seen = 0;
  std::vector<std::string> unnamed;
  find_unnamed(list.root, {}, folders, seen, unnamed);
  if (!unnamed.empty()) list.skipped[kNamedByNoRow] = std::move(unnamed);
}

}  // namespace dtrain::data
