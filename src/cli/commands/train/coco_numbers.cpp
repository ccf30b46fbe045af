#include "coco_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <unordered_map>

#include <dtrain/base/error.hpp>
#include <dtrain/data/coco.hpp>

#include "cli/printable.hpp"

namespace dtrain::cli {
namespace {

using Parts = std::vector<std::string>;

Parts parts_of(const Path& path) {
  Parts parts;
  for (const Path& part : path.lexically_normal()) parts.push_back(part.string());
  return parts;
}

// How well an image's file_name fits a file: the parts at their ends that are the same, and whether these are all of
// the file_name.
struct Fit {
  std::size_t parts = 0;
  bool whole = false;
  friend auto operator<=>(const Fit&, const Fit&) = default;
};

Fit fit_of(const Parts& image, const Parts& file) {
  const auto [in_image, in_file] = std::mismatch(image.rbegin(), image.rend(), file.rbegin(), file.rend());
  return {static_cast<std::size_t>(in_image - image.rbegin()), in_image == image.rend()};
}

class PictureFinder {
 public:
  PictureFinder(const data::CocoSet& set, const Path& annotations) : annotations_(annotations) {
    for (const data::CocoPicture& picture : set.pictures) {
      if (!picture.file.empty()) by_name_[Path(picture.file).filename().string()].push_back(&picture);
    }
  }

  std::map<Path, std::int64_t> find(const std::vector<Path>& files) {
    for (const Path& file : files) add(file);
    std::map<Path, std::int64_t> numbers;
    for (const auto& [number, taken] : taken_) {
      if (taken.other) refuse_files(taken);
      numbers.emplace(*taken.file, number);
    }
    return numbers;
  }

 private:
  struct Taken {
    const data::CocoPicture* picture = nullptr;
    const Path* file = nullptr;   // the one that fits best
    const Path* other = nullptr;  // another one that fits as well
    Fit fit;
  };

  // Gives the file the image that fits it best, unless another file fits that image better.
  void add(const Path& file) {
    const auto [picture, fit] = best_for(file);
    if (!picture) return;
    Taken& taken = taken_[picture->id];
    if (!taken.file || fit > taken.fit) {
      taken = {picture, &file, nullptr, fit};
    } else if (fit == taken.fit) {
      taken.other = &file;
    }
  }

  std::pair<const data::CocoPicture*, Fit> best_for(const Path& file) const {
    const auto named = by_name_.find(file.filename().string());
    if (named == by_name_.end()) return {};
    const Parts parts = parts_of(file);
    const data::CocoPicture *best = nullptr, *second = nullptr;
    Fit most;
    for (const data::CocoPicture* picture : named->second) {
      const Fit fit = fit_of(parts_of(picture->file), parts);
      if (!best || fit > most) {
        best = picture, second = nullptr, most = fit;
      } else if (fit == most) {
        second = picture;
      }
    }
    if (second) refuse_images(file, *best, *second);
    return {best, most};
  }

  [[noreturn]] void refuse_images(const Path& file, const data::CocoPicture& one,
                                  const data::CocoPicture& other) const {
    throw DataError(fmt::format("{}: may be {} or {} of {}", printable_word(file.string()), printable_word(one.file),
                                printable_word(other.file), annotations_.string()),
                    "name the pictures with the folders that the annotations have in \"file_name\"");
  }

  [[noreturn]] void refuse_files(const Taken& taken) const {
    throw DataError(
        fmt::format("{}: the image {} may be {} or {}", annotations_.string(), printable_word(taken.picture->file),
                    printable_word(taken.file->string()), printable_word(taken.other->string())),
        "give each picture once, and none of the same name that the annotations do not list");
  }

  const Path& annotations_;
  std::unordered_map<std::string, std::vector<const data::CocoPicture*>> by_name_;
  std::map<std::int64_t, Taken> taken_;  // by the numbers of the images
};

std::optional<std::int64_t> category_of(const std::string& name, const data::CocoSet& set, const Path& annotations) {
  const auto category = std::ranges::find(set.categories, name, &data::CocoCategory::name);
  if (category == set.categories.end()) return std::nullopt;
  const auto twice = std::find_if(category + 1, set.categories.end(),
                                  [&](const data::CocoCategory& other) { return other.name == name; });
  if (twice != set.categories.end()) {
    throw DataError(
        fmt::format("{} has two categories {}: {} and {}", annotations.string(), name, category->id, twice->id),
        "give the categories different names, or all categories that the network was trained on, in the "
        "same order of ids");
  }
  return category->id;
}

// Those of the annotations that the network was trained on are told by their order, as the records' labels are.
std::vector<std::optional<std::int64_t>> category_numbers(const data::CocoSet& set, const Path& annotations,
                                                          const std::vector<std::string>& names) {
  std::vector<std::optional<std::int64_t>> numbers;
  if (std::ranges::equal(set.categories, names, {}, &data::CocoCategory::name)) {
    for (const data::CocoCategory& category : set.categories) numbers.push_back(category.id);
  } else {
    for (const std::string& name : names) numbers.push_back(category_of(name, set, annotations));
  }
  return numbers;
}

}  // namespace

CocoNumbers read_coco_numbers(const Path& annotations, const std::vector<Path>& files,
                              const std::vector<std::string>& names) {
  const MappedFile file(annotations);
  const data::CocoSet set = data::read_coco_names(text_of(file.bytes()), annotations.string());
  return {PictureFinder(set, annotations).find(files), category_numbers(set, annotations, names)};
}

}  // namespace dtrain::cli
