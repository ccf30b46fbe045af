#include <dtrain/train/coco_results.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json_without.hpp>
#include <dtrain/base/parallel.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/coco.hpp>

namespace dtrain::train {
namespace {

constexpr std::size_t kAtOnce = 1024;  // results that a thread reads, and pictures that it scores

// One of the file, without its mask, which takes most of the memory and is read when its picture is scored.
struct Result {
  std::int64_t picture = 0;
  std::int32_t category = 0;
  double score = 0;
  data::PixelBox box;
  bool has_box = false, has_mask = false;
  std::string_view text;
};

// Programs write null for a mask that they did not look for.
bool has_mask(std::string_view result) {
  constexpr std::string_view kKey = "\"segmentation\"";
  const std::size_t at = result.find(kKey);
  if (at == result.npos) return false;
  std::string_view value = trim(result.substr(at + kKey.size()));
  if (value.starts_with(':')) value = trim(value.substr(1));
  return !value.starts_with("null");
}

Result read_result(std::string_view text, const std::string& source, const data::CocoSet& truth) {
  constexpr std::array<std::string_view, 1> kMask{"segmentation"};
  const Json json = parse_json_without(text, source, kMask);
  Result result;
  result.text = text;
  result.picture = data::coco_whole(json, "image_id");
  result.category = truth.label_of(data::coco_whole(json, "category_id"));
  result.score = data::coco_real(json, "score");
  const Json* box = data::coco_bbox(json);
  result.has_box = box != nullptr;
  if (box) result.box = data::coco_box(*box);
  result.has_mask = has_mask(text);
  if (!result.has_box && !result.has_mask) throw DataError("it has neither \"bbox\" nor \"segmentation\"");
  return result;
}

std::vector<Result> read_results(const std::vector<std::string_view>& elements, const std::string& source,
                                 const data::CocoSet& truth) try {
  std::vector<Result> results(elements.size());
  for_each_in_parallel((elements.size() + kAtOnce - 1) / kAtOnce, [&](std::size_t block) {
    for (std::size_t i = block * kAtOnce; i < std::min(elements.size(), (block + 1) * kAtOnce); ++i) {
      try {
        results[i] = read_result(elements[i], source, truth);
      } catch (const DataError& error) {
        const std::string what = error.what();
        throw DataError(what.starts_with(source) ? what : fmt::format("{}: result {}: {}", source, i + 1, what));
      }
    }
  });
  return results;
} catch (const DataError& error) {
  throw DataError(error.what(),
                  "results of COCO are a list of objects with image_id, category_id, score and bbox or segmentation");
}

class Scorer {
 public:
  Scorer(const data::CocoSet& truth, const std::vector<Result>& results, std::string truth_source, std::string source)
      : truth_(truth), results_(results), truth_source_(std::move(truth_source)), source_(std::move(source)) {
    for (const data::CocoPicture& picture : truth.pictures) pictures_[picture.id].picture = &picture;
    for (const data::CocoObject& object : truth.objects) {
      const auto picture = pictures_.find(object.picture);
      if (object.picture < 0 && !object.fault.empty()) refuse_truth(object, object.fault);
      if (picture == pictures_.end() || object.annotation.label < 0) continue;
      if (!object.fault.empty()) refuse_truth(object, object.fault);
      picture->second.truths.push_back(&object);
    }
    for (const Result& result : results) place(result);
    refuse_unlisted();
    for (const auto& [id, each] : pictures_) order_.push_back(&each);
  }

  // True objects that count, and those of them without a mask.
  std::size_t truths() const {
    std::size_t count = 0;
    for (const PictureResults* each : order_) count += each->truths.size();
    return count;
  }
  std::size_t without_mask() const {
    std::ptrdiff_t count = 0;
    for (const PictureResults* each : order_) count += std::ranges::count_if(each->truths, lacks_mask);
    return static_cast<std::size_t>(count);
  }

  CocoScore score(OverlapOf what) const {
    AveragePrecision precision(what, truth_.categories.size());
    for_each_in_parallel(order_.size(), [&](std::size_t i) { add(*order_[i], what, precision); });
    return {precision.figures(), precision.by_category()};
  }

 private:
  struct PictureResults {
    const data::CocoPicture* picture = nullptr;
    std::vector<const data::CocoObject*> truths;
    std::vector<const Result*> results;
  };

  void place(const Result& result) {
    const auto picture = pictures_.find(result.picture);
    if (picture == pictures_.end()) {
      if (unlisted_.size() < kShown) unlisted_.push_back(fmt::format("{}", result.picture));
      ++unlisted_count_;
    } else {
      picture->second.results.push_back(&result);
    }
  }

  void refuse_unlisted() const {
    if (unlisted_count_ == 0) return;
    throw DataError(fmt::format("{}: {} results are of images that the annotations do not list: {}{}", source_,
                                unlisted_count_, join(unlisted_, ", "), unlisted_count_ > kShown ? ", ..." : ""),
                    "give the annotations of the images in which the objects were found");
  }

  [[noreturn]] void refuse_truth(const data::CocoObject& object, const std::string& what) const {
    const std::string picture = object.picture < 0 ? "" : fmt::format(" of image {}", object.picture);
    throw DataError(fmt::format("{}: {}{}: {}", truth_source_, truth_.name_of(object), picture, what));
  }

  // One whose polygons are all of no use has a mask of no pixel.
  static bool lacks_mask(const data::CocoObject* object) {
    return !object->annotation.has_mask() && object->polygons_left_out == 0;
  }

  // Of no pixel where the object has none, as pack gives it where others have masks.
  data::Rle mask_of_truth(const data::CocoObject& object, const data::CocoPicture& picture) const {
    if (picture.height < 1 || picture.width < 1) refuse_truth(object, "its image has no \"height\" and \"width\"");
    return data::mask_of(object.annotation, picture.height, picture.width);
  }

  data::Rle mask_of_result(const Result& result, const data::CocoPicture& picture) const {
    data::Annotation object;
    const Json json = Json::parse(result.text, source_);
    const Json* segmentation = json.find("segmentation");
    if (!segmentation || segmentation->is_null())
      throw DataError(
          fmt::format("{}: a result of image {} has no \"segmentation\", others have", source_, picture.id));
    data::read_coco_mask(*segmentation, picture.height, picture.width, object);
    return data::mask_of(object, picture.height, picture.width);
  }

  void add(const PictureResults& of, OverlapOf what, AveragePrecision& precision) const {
    const bool masks = what == OverlapOf::masks;
    std::vector<data::Rle> truth_masks, found_masks;
    std::vector<TrueObject> truths;
    std::vector<FoundObject> found;
    truth_masks.reserve(of.truths.size());
    found_masks.reserve(of.results.size());
    for (const data::CocoObject* object : of.truths) {
      const data::Annotation& annotation = object->annotation;
      truths.push_back({annotation.label, annotation.crowd, annotation.area, annotation.box, nullptr});
      if (masks) truths.back().mask = &truth_masks.emplace_back(mask_of_truth(*object, *of.picture));
    }
    const bool by_box = !results_.empty() && results_.front().has_box;
    for (const Result* result : of.results) {
      FoundObject object{result->category, result->score, result->box.area(), result->box, nullptr};
      if (masks || !result->has_box) {
        const data::Rle& mask = found_masks.emplace_back(mask_of_result(*result, *of.picture));
        object.mask = &mask;
        if (!result->has_box) object.box = data::mask_box(mask);
        if (!by_box) object.area = static_cast<double>(data::mask_area(mask));
      }
      found.push_back(object);
    }
    precision.add(static_cast<std::uint64_t>(of.picture->id), truths, found);
  }

  static constexpr std::size_t kShown = 3;
  const data::CocoSet& truth_;
  const std::vector<Result>& results_;
  std::string truth_source_, source_;
  std::map<std::int64_t, PictureResults> pictures_;
  std::vector<const PictureResults*> order_;
  std::vector<std::string> unlisted_;
  std::size_t unlisted_count_ = 0;
};

// An object is what annotations are, so the two files may have changed places.
std::vector<std::string_view> elements_of(std::string_view results, const std::string& source) {
  if (trim(results.substr(0, kAtOnce)).starts_with('{')) {
    throw DataError(source + ": is no list of results",
                    "an object with \"images\" and \"categories\" is for setting 'annotations'");
  }
  return data::coco_elements(results, source);
}

}  // namespace

CocoReport score_coco_results(const Path& results, const Path& annotations) {
  const MappedFile results_file(results), annotations_file(annotations);
  const std::vector<std::string_view> elements = elements_of(text_of(results_file.bytes()), results.string());
  const bool masks = !elements.empty() && has_mask(elements.front());
  const data::CocoSet truth = data::read_coco(text_of(annotations_file.bytes()), annotations.string(), masks);
  const std::vector<Result> found = read_results(elements, results.string(), truth);
  CocoReport report;
  report.pictures = truth.pictures.size();
  report.objects = truth.objects.size();
  report.results = found.size();
  for (const data::CocoCategory& category : truth.categories) report.categories.push_back(category.name);
  report.unknown = static_cast<std::size_t>(std::ranges::count(found, -1, &Result::category));
  const Scorer scorer(truth, found, annotations.string(), results.string());
  report.boxes = scorer.score(OverlapOf::boxes);
  if (masks) report.without_mask = scorer.without_mask();
  report.masks_unscored = report.without_mask > 0 && report.without_mask == scorer.truths();
  if (masks && !report.masks_unscored) report.masks = scorer.score(OverlapOf::masks);
  return report;
}

}  // namespace dtrain::train
