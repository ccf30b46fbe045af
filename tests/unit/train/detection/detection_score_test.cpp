#include "train/detection/detection_score.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include <dtrain/comm/mesh.hpp>
#include <dtrain/data/objects.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/train/found_objects.hpp>

namespace dtrain::train {
namespace {

constexpr int kHeight = 100, kWidth = 200;  // of the original pictures

// The mask of what the box covers of an original picture.
std::vector<std::uint32_t> runs_of(int left, int top, int right, int bottom) {
  std::vector<std::uint8_t> pixels(std::size_t{kHeight} * kWidth);
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x) pixels[static_cast<std::size_t>(y * kWidth + x)] = 1;
  }
  return data::encode_mask(pixels, kHeight, kWidth).runs;
}

// A picture of 200 x 100 pixels in the left upper corner of an input of 64 x 64.
nn::PictureObjects picture_of(std::vector<nn::Box> boxes, std::vector<std::int32_t> classes) {
  nn::PictureObjects picture{.boxes = std::move(boxes),
                             .classes = std::move(classes),
                             .crowd = {},
                             .areas = {},
                             .masks = {},
                             .height = 32,
                             .width = 64,
                             .scale = 0.32f,
                             .original_height = kHeight,
                             .original_width = kWidth};
  picture.crowd.assign(picture.boxes.size(), 0);
  picture.areas.assign(picture.boxes.size(), 2000.0);
  for (const nn::Box& box : picture.boxes) {
    const data::PixelBox there = box_in_picture(picture, box);
    picture.annotated.push_back({there.left, there.top, there.width, there.height});
  }
  return picture;
}

nn::Graph detector(const std::string& name = "retinanet") {
  return nn::build_network({.name = name, .image = {3, 64, 64}, .classes = 3, .backbone = "resnet-18"});
}

class Results {
 public:
  Results(const nn::Graph& graph, std::size_t pictures)
      : layer_(*nn::detection_of(graph)), values(pictures * static_cast<std::size_t>(layer_.result_size())) {}
  void put(std::size_t picture, std::size_t row, const nn::Box& box, float score, int label) {
    const float numbers[] = {box.left, box.top, box.right, box.bottom, score, static_cast<float>(label)};
    std::ranges::copy(numbers, at(picture, row));
  }
  // The left half of the box, or all of it, is the object's.
  void put_mask(std::size_t picture, std::size_t row, bool half) {
    for (int i = 0; i < layer_.mask * layer_.mask; ++i)
      at(picture, row)[nn::Detections::kRow + i] = half && i % layer_.mask >= layer_.mask / 2 ? 0.0f : 1.0f;
  }

 private:
  const nn::Detections& layer_;

 public:
  std::vector<float> values;

 private:
  std::vector<float>::iterator at(std::size_t picture, std::size_t row) {
    return values.begin() + static_cast<std::ptrdiff_t>(picture) * layer_.result_size() +
           static_cast<std::ptrdiff_t>(row) * layer_.row_size();
  }
};

TEST(FoundObjects, AreInPixelsOfThePictureAndEndAtTheFirstWithoutAScore) {
  const nn::Graph graph = detector();
  Results results(graph, 1);
  results.put(0, 0, {16, 8, 32, 24}, 0.75f, 2);
  results.put(0, 2, {0, 0, 1, 1}, 0.5f, 1);
  const FoundObjects found = found_objects(*nn::detection_of(graph), picture_of({}, {}), results.values);
  ASSERT_EQ(found.objects.size(), 1u);
  EXPECT_EQ(found.objects[0].category, 2);
  EXPECT_EQ(found.objects[0].score, 0.75);
  EXPECT_DOUBLE_EQ(found.objects[0].box.left, 50);
  EXPECT_DOUBLE_EQ(found.objects[0].box.top, 25);
  EXPECT_DOUBLE_EQ(found.objects[0].box.width, 50);
  EXPECT_DOUBLE_EQ(found.objects[0].box.height, 50);
  EXPECT_DOUBLE_EQ(found.objects[0].area, 2500);
  EXPECT_EQ(found.objects[0].mask, nullptr);
  EXPECT_TRUE(found.masks.empty());
}

TEST(FoundObjects, HaveMasksInPixelsOfThePicture) {
  const nn::Graph graph = detector("mask-rcnn");
  Results results(graph, 1);
  results.put(0, 0, {16, 8, 32, 24}, 0.75f, 2);
  results.put_mask(0, 0, true);
  results.put(0, 1, {0, 0, 64, 32}, 0.5f, 1);
  results.put_mask(0, 1, false);
  const FoundObjects found = found_objects(*nn::detection_of(graph), picture_of({}, {}), results.values);
  ASSERT_EQ(found.masks.size(), 2u);
  EXPECT_EQ(found.objects[0].mask, &found.masks[0]);
  EXPECT_EQ(found.masks[0].h, kHeight);
  EXPECT_EQ(found.masks[0].w, kWidth);
  EXPECT_EQ(data::mask_box(found.masks[0]), (data::PixelBox{50, 25, 25, 50}));
  EXPECT_GT(data::mask_area(found.masks[1]), 19'500u);  // but for its edges the whole picture
  EXPECT_DOUBLE_EQ(found.objects[0].area, 2500);
}

TEST(DetectionScore, IsTheAveragePrecisionOfAllPictures) {
  const nn::Graph graph = detector();
  const nn::Box box{16, 8, 32, 24}, elsewhere{40, 8, 56, 24};
  const std::vector<nn::PictureObjects> pictures = {picture_of({box}, {0}), picture_of({box}, {1}), picture_of({}, {})};
  const std::vector<std::uint32_t> ids = {5, 3, 9};
  Results results(graph, 3);
  results.put(0, 0, box, 0.9f, 0);
  results.put(1, 0, elsewhere, 0.8f, 1);
  DetectionScore score(graph);
  score.add({.n = 3, .sample_ids = ids.data(), .objects = pictures.data()}, results.values);
  EvaluationReport report;
  score.finish(*comm::make_single(), report);
  EXPECT_DOUBLE_EQ(report.boxes->ap, 0.5);  // of class 0 all, of class 1 none; of class 2 there is nothing
  EXPECT_EQ(report.accuracy, report.boxes->ap);
  EXPECT_TRUE(std::isnan(report.loss));
  ASSERT_EQ(report.boxes_by_class.size(), 3u);
  EXPECT_DOUBLE_EQ(report.boxes_by_class[0].ap50, 1);
  EXPECT_DOUBLE_EQ(report.boxes_by_class[1].ap50, 0);
  EXPECT_DOUBLE_EQ(report.boxes_by_class[2].ap50, -1);
  EXPECT_FALSE(report.masks);
}

// pycocotools compares what is found with the box as it was annotated. Inside of the picture the true one is found as
// it is, and of the whole of it the found one is 0.62.
TEST(DetectionScore, ComparesBoxesAsTheyWereAnnotatedAlsoBeyondThePicture) {
  const nn::Graph graph = detector();
  const data::Annotations annotations{
      kHeight, kWidth, {{.id = 1, .label = 0, .box = {138, 25, 100, 50}, .area = 5000}}};
  nn::PictureObjects picture;
  data::scale_objects(annotations, {32, 64}, false, {}, 64, 64, picture);
  ASSERT_EQ(picture.boxes.size(), 1u);
  EXPECT_EQ(picture.boxes[0].right, 64);
  Results results(graph, 1);
  results.put(0, 0, picture.boxes[0], 0.9f, 0);
  const std::uint32_t id = 1;
  DetectionScore score(graph);
  score.add({.n = 1, .sample_ids = &id, .objects = &picture}, results.values);
  EvaluationReport report;
  score.finish(*comm::make_single(), report);
  EXPECT_NEAR(report.boxes->ap, 0.3, 1e-12);  // at the overlaps 0.50, 0.55 and 0.60
  EXPECT_EQ(report.boxes->ap75, 0);
}

// Both boxes are found as they are; the mask of class 0 as well, of that of class 1 half of its pixels.
struct MaskScene {
  nn::Graph graph = detector("mask-rcnn");
  std::vector<nn::PictureObjects> pictures;
  std::vector<std::uint32_t> ids = {5, 3};
  Results results{graph, 2};

  MaskScene() {
    const nn::Box box{16, 8, 32, 24};
    for (const std::int32_t label : {0, 1}) {
      pictures.push_back(picture_of({box}, {label}));
      pictures.back().runs = {runs_of(50, 25, 100, 75)};
      const auto picture = static_cast<std::size_t>(label);
      results.put(picture, 0, box, 0.9f, label);
      results.put_mask(picture, 0, label == 1);
    }
  }
  void add(DetectionScore& score, std::size_t first, int count) const {
    const std::span<const float> values = results.values;
    const std::size_t size = values.size() / 2;
    score.add({.n = count, .sample_ids = &ids[first], .objects = &pictures[first]},
              values.subspan(first * size, static_cast<std::size_t>(count) * size));
  }
};

void expect_scene_figures(const EvaluationReport& report) {
  EXPECT_DOUBLE_EQ(report.boxes->ap, 1);
  EXPECT_EQ(report.accuracy, report.boxes->ap);
  ASSERT_TRUE(report.masks);
  ASSERT_EQ(report.masks_by_class.size(), 3u);
  EXPECT_NEAR(report.masks_by_class[0].ap, 1, 1e-12);
  EXPECT_NEAR(report.masks_by_class[1].ap, 0.1, 1e-12);  // at overlap 0.50 alone
  EXPECT_NEAR(report.masks->ap, 0.55, 1e-12);
  EXPECT_EQ(report.masks_by_class[2].ap, -1);
}

TEST(DetectionScore, OfMasksStandsBesideThatOfBoxes) {
  const MaskScene scene;
  DetectionScore score(scene.graph);
  scene.add(score, 0, 2);
  EvaluationReport report;
  score.finish(*comm::make_single(), report);
  expect_scene_figures(report);
}

TEST(DetectionScore, IsThatOfAllRanks) {
  const MaskScene scene;
  auto world = comm::make_local_world(2);
  std::vector<EvaluationReport> reports(2);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank, comm = std::move(world[rank])] {
      DetectionScore score(scene.graph);
      scene.add(score, rank, 1);
      score.finish(*comm, reports[rank]);
    });
  }
  threads.clear();
  for (const EvaluationReport& report : reports) expect_scene_figures(report);
}

// 17,000 pictures with 100 objects each are 68 MB, more than one gathering over TCP takes.
void find_objects_in_many_pictures(const nn::Graph& graph, DetectionScore& score) {
  constexpr std::uint32_t kAtOnce = 100, kTimes = 170;
  constexpr std::size_t kObjects = 100;
  const std::vector<nn::PictureObjects> pictures(kAtOnce, picture_of({}, {}));
  Results results(graph, kAtOnce);
  for (std::size_t picture = 0; picture < kAtOnce; ++picture) {
    for (std::size_t row = 0; row < kObjects; ++row) results.put(picture, row, {16, 8, 32, 24}, 0.5f, 1);
  }
  std::vector<std::uint32_t> ids(kAtOnce);
  for (std::uint32_t time = 0; time < kTimes; ++time) {
    for (std::uint32_t i = 0; i < kAtOnce; ++i) ids[i] = time * kAtOnce + i;
    score.add({.n = kAtOnce, .sample_ids = ids.data(), .objects = pictures.data()}, results.values);
  }
}

TEST(DetectionScore, MayBeLargerThanWhatRanksGatherAtOnce) {
  const nn::Graph graph = detector();
  std::vector<std::unique_ptr<comm::Endpoint>> endpoints;
  comm::MeshPlan plan{.generation = 1, .rank = 0, .ranks = {}};
  for (int rank = 0; rank < 2; ++rank) {
    endpoints.push_back(std::make_unique<comm::Endpoint>(comm::EndpointOptions{.secret = "test"}));
    plan.ranks.push_back(endpoints.back()->address());
  }
  std::vector<EvaluationReport> reports(2);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank, mine = plan]() mutable {
      mine.rank = static_cast<int>(rank);
      const auto comm = endpoints[rank]->connect(mine, std::chrono::seconds(30));
      DetectionScore score(graph);
      if (rank == 0) {
        find_objects_in_many_pictures(graph, score);
      } else {
        const nn::Box box{16, 8, 32, 24};
        const nn::PictureObjects picture = picture_of({box}, {0});
        const std::uint32_t id = 1'000'000;
        Results results(graph, 1);
        results.put(0, 0, box, 0.9f, 0);
        score.add({.n = 1, .sample_ids = &id, .objects = &picture}, results.values);
      }
      score.finish(*comm, reports[rank]);
    });
  }
  threads.clear();
  for (const EvaluationReport& report : reports) EXPECT_DOUBLE_EQ(report.boxes_by_class.at(0).ap, 1);
}

TEST(GatherInPieces, GivesTheBytesOfAllRanksWhateverTheirSizes) {
  const std::vector<std::string> all = {std::string((5 << 20) / 2, 'a'), "", std::string(1 << 20, 'c')};
  auto world = comm::make_local_world(3);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    threads.emplace_back(
        [&all, rank, comm = std::move(world[rank])] { EXPECT_EQ(gather_in_pieces(*comm, bytes_of(all[rank])), all); });
  }
}

// A wrong one of 1875 pixels of box and half as many of mask is small, up to 32^2.
TEST(DetectionScore, OfMasksSortsWhatIsFoundByTheAreaOfItsMask) {
  MaskScene scene;
  const nn::Box small{0, 0, 4, 4};
  scene.pictures[0] = picture_of({small}, {0});
  scene.pictures[0].areas = {150};
  scene.results.put(0, 0, {16, 8, 28, 24}, 0.9f, 0);
  scene.results.put_mask(0, 0, true);
  scene.results.put(0, 1, small, 0.8f, 0);
  scene.results.put_mask(0, 1, false);
  const FoundObjects found = found_objects(*nn::detection_of(scene.graph), scene.pictures[0], scene.results.values);
  scene.pictures[0].runs = {found.masks[1].runs};
  DetectionScore score(scene.graph);
  scene.add(score, 0, 1);
  EvaluationReport report;
  score.finish(*comm::make_single(), report);
  EXPECT_NEAR(report.masks->ap_small, 0.5, 1e-12);
  EXPECT_NEAR(report.boxes->ap_small, 1, 1e-12);
}

}  // namespace
}  // namespace dtrain::train
