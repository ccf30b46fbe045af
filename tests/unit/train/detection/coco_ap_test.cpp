// tests/judge/coco_ap.py compares made-up results of many pictures with pycocotools.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/base/parallel.hpp>
#include <dtrain/base/random.hpp>
#include <dtrain/train/coco_ap.hpp>

namespace dtrain::train {
namespace {

TrueObject truth_at(double left, double side, bool crowd = false, std::int32_t category = 0) {
  return {category, crowd, side * side, {left, 0, side, side}, nullptr};
}
FoundObject found_at(double left, double side, double score, std::int32_t category = 0) {
  return {category, score, side * side, {left, 0, side, side}, nullptr};
}

using Truths = std::vector<TrueObject>;
using Founds = std::vector<FoundObject>;

CocoFigures figures_of(const Truths& truth, const Founds& found) {
  AveragePrecision precision(OverlapOf::boxes, 1);
  precision.add(1, truth, found);
  return precision.figures();
}

TEST(AveragePrecision, IsOneForAllFoundAndNothingElse) {
  const CocoFigures figures =
      figures_of({truth_at(0, 10), truth_at(100, 50)}, {found_at(0, 10, 0.5), found_at(100, 50, 0.9)});
  EXPECT_NEAR(figures.ap, 1, 1e-12);
  EXPECT_NEAR(figures.ap_small, 1, 1e-12);
  EXPECT_NEAR(figures.ap_medium, 1, 1e-12);
  EXPECT_EQ(figures.ap_large, -1);
  EXPECT_EQ(figures.ar1, 0.5);
  EXPECT_EQ(figures.ar10, 1);
}

TEST(AveragePrecision, FallsWithWrongOnesOfHigherScores) {
  // One wrong above two right ones: precisions 0, 1/2, 2/3, and the best of any higher recall is 2/3.
  const CocoFigures figures = figures_of({truth_at(0, 10), truth_at(20, 10)},
                                         {found_at(50, 10, 0.9), found_at(0, 10, 0.8), found_at(20, 10, 0.7)});
  EXPECT_NEAR(figures.ap, 2.0 / 3, 1e-12);
  // A wrong one between: 1 up to the recall 0.5, which are 51 of 101 recalls, then 2/3.
  EXPECT_NEAR(figures_of({truth_at(0, 10), truth_at(20, 10)},
                         {found_at(0, 10, 0.9), found_at(50, 10, 0.8), found_at(20, 10, 0.7)})
                  .ap,
              (51 + 50 * 2.0 / 3) / 101, 1e-12);
}

TEST(AveragePrecision, CountsAnOverlapUpToItsLimit) {
  // 8 of 12 columns: 0.667 reaches 0.50, 0.55, 0.60 and 0.65.
  const CocoFigures figures = figures_of({truth_at(0, 10)}, {{0, 0.5, 100, {2, 0, 10, 10}, nullptr}});
  EXPECT_NEAR(figures.ap, 0.4, 1e-12);
  EXPECT_NEAR(figures.ap50, 1, 1e-12);
  EXPECT_EQ(figures.ap75, 0);
}

TEST(AveragePrecision, DoesNotCountWhatLiesInCrowds) {
  const Truths truth{truth_at(0, 10), truth_at(100, 80, true)};
  EXPECT_NEAR(figures_of(truth, {found_at(110, 10, 0.9), found_at(120, 10, 0.8), found_at(0, 10, 0.7)}).ap, 1, 1e-12);
  EXPECT_EQ(figures_of({truth_at(100, 80, true)}, {found_at(110, 10, 0.9)}).ap, -1);
}

TEST(AveragePrecision, CountsTheSecondOfTwoForOneObjectAsWrong) {
  EXPECT_NEAR(figures_of({truth_at(0, 10), truth_at(50, 10)}, {found_at(0, 10, 0.9), found_at(0, 10, 0.8)}).ap,
              51.0 / 101, 1e-12);
}

TEST(AveragePrecision, IsTheMeanOfTheCategoriesThatAreThere) {
  AveragePrecision precision(OverlapOf::boxes, 3);
  precision.add(1, Truths{truth_at(0, 10), truth_at(20, 10, false, 2)},
                Founds{found_at(0, 10, 0.5), found_at(0, 10, 0.5, 1)});
  EXPECT_NEAR(precision.figures().ap, 0.5, 1e-12);
  const std::vector<CocoFigures> each = precision.by_category();
  EXPECT_NEAR(each[0].ap, 1, 1e-12);
  EXPECT_EQ(each[1].ap, -1);
  EXPECT_EQ(each[2].ap, 0);
}

TEST(AveragePrecision, OfMasksComparesPixels) {
  const data::Rle left{10, 10, {0, 50, 50}}, most{10, 10, {0, 80, 20}};
  AveragePrecision precision(OverlapOf::masks, 1);
  precision.add(1, Truths{{0, false, 50, {0, 0, 5, 10}, &left}}, Founds{{0, 0.5, 80, {0, 0, 8, 10}, &most}});
  EXPECT_NEAR(precision.figures().ap, 0.3, 1e-12);  // 0.625 reaches 0.50, 0.55 and 0.60
}

TEST(AveragePrecision, RefusesScoresThatAreNoNumbers) {
  EXPECT_THROW(figures_of({truth_at(0, 10)}, {found_at(0, 10, std::nan(""))}), DataError);
}

TEST(AveragePrecision, IsThatOfAllParts) {
  AveragePrecision whole(OverlapOf::boxes, 2), all(OverlapOf::boxes, 2);
  std::vector<std::string> parts;
  for (int picture = 0; picture < 6; ++picture) {
    const Truths truth{truth_at(0, 40), truth_at(100, 20)};
    const Founds found{found_at(picture, 40, 0.9), found_at(300, 20, 0.95 - 0.01 * picture, 1)};
    AveragePrecision part(OverlapOf::boxes, 2);
    for (AveragePrecision* each : {&whole, &part}) each->add(static_cast<std::uint64_t>(picture), truth, found);
    parts.push_back(part.bytes());
  }
  std::ranges::reverse(parts);
  for (const std::string& part : parts) all.merge(part);
  for (const NamedFigure& figure : coco_figure_names())
    EXPECT_EQ(all.figures().*figure.value, whole.figures().*figure.value) << figure.name;
  EXPECT_GT(all.figures().ap, 0);
  for (const std::size_t length : {std::size_t{3}, parts[0].size() - 1})
    EXPECT_THROW(all.merge(std::string_view(parts[0]).substr(0, length)), PeerLost);
  EXPECT_THROW(AveragePrecision(OverlapOf::boxes, 1).merge(parts[0]), PeerLost);
}

TEST(AveragePrecision, IsTheSameInWhateverOrderPicturesCome) {
  constexpr std::size_t kPictures = 200;
  std::vector<std::pair<Truths, Founds>> pictures(kPictures);
  RandomStream random(1, RandomUse::drawing, 0, 0);
  for (auto& [truth, found] : pictures) {
    for (int i = 0; i < 4; ++i) {
      const double side = 5 + random.below(100);
      truth.push_back(truth_at(i * 120, side, random.below(8) == 0));
      found.push_back(found_at(i * 120 + random.below(20), side, random.below(5) / 5.0));
    }
  }
  AveragePrecision forward(OverlapOf::boxes, 1), mixed(OverlapOf::boxes, 1);
  for (std::size_t i = 0; i < kPictures; ++i) forward.add(i, pictures[i].first, pictures[i].second);
  for_each_in_parallel(kPictures, [&](std::size_t i) {
    const std::size_t at = (i * 77) % kPictures;
    mixed.add(at, pictures[at].first, pictures[at].second);
  });
  for (const NamedFigure& figure : coco_figure_names())
    EXPECT_EQ(forward.figures().*figure.value, mixed.figures().*figure.value) << figure.name;
}

}  // namespace
}  // namespace dtrain::train
