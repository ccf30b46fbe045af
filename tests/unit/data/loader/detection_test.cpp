#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <dtrain/base/random.hpp>
#include <dtrain/data/loader.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

Annotation object_at(double left, double top, double width, double height, std::int32_t label = 0) {
  Annotation object{.id = 1, .label = label, .box = {left, top, width, height}, .area = width * height};
  object.polygons = {{left, top, left + width, top, left + width, top + height, left, top + height}};
  return object;
}

void add(RecordWriter& writer, std::uint64_t id, const Image& image, const Annotations& annotations,
         Encoding encoding = Encoding::raw) {
  const std::string block = objects_block(annotations);
  writer.add(id, detection_labels(annotations, block.size()), bytes_of(encode_image(image, encoding) + block));
}

// One grey picture of 2 rows and 4 columns, 10, 20, ... 80, with an object in its upper left corner.
class Detection : public testing::Test {
 protected:
  Detection() : rec(folder / "x.rec") {
    options.shape = {1, 3, 5};
    options.classes = 3;
    options.augment.mean = {10, 10, 10};
    options.augment.std = {2, 2, 2};
    options.detection = {.shorter_edge = 2, .masks = true};
    write({2, 4, {object_at(0, 0, 1, 1, 2)}});
  }
  void write(const Annotations& annotations) const {
    RecordWriter writer(rec);
    add(writer, 7, {1, 2, 4, {10, 20, 30, 40, 50, 60, 70, 80}}, annotations);
    writer.finish();
  }
  Batch load(std::uint32_t epoch = 0) {
    loader.emplace(rec, options);
    loader->start(epoch, {{0, 1}});
    return *loader->next();
  }

  TemporaryFolder folder;
  Path rec;
  LoaderOptions options;
  std::optional<Loader> loader;
};

TEST_F(Detection, PutsThePictureInTheUpperLeftCorner) {
  const Batch batch = load();
  EXPECT_EQ(std::vector<float>(batch.images, batch.images + 15),
            (std::vector<float>{0, 5, 10, 15, 0, 20, 25, 30, 35, 0, 0, 0, 0, 0, 0}));
  ASSERT_NE(batch.objects, nullptr);
  const nn::PictureObjects& objects = batch.objects[0];
  ASSERT_EQ(objects.boxes.size(), 1u);
  EXPECT_EQ(objects.boxes[0].right, 1);
  EXPECT_EQ(objects.boxes[0].bottom, 1);
  EXPECT_EQ(objects.classes[0], 2);
  EXPECT_EQ(objects.masks, (std::vector<std::uint8_t>{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(objects.height, 2);
  EXPECT_EQ(objects.width, 4);
  EXPECT_EQ(objects.original_height, 2);
  EXPECT_EQ(batch.labels[0], 0);
  EXPECT_EQ(batch.sample_ids[0], 0u);
}

TEST_F(Detection, MirrorsPictureBoxesAndMasksTogether) {
  options.augment.random_mirror = options.augment.alternate_mirror = true;
  bool seen[2] = {};
  for (const std::uint32_t epoch : {0u, 1u}) {
    const Batch batch = load(epoch);
    const bool mirrored = batch.images[0] == 15;
    seen[mirrored] = true;
    if (!mirrored) continue;
    EXPECT_EQ(std::vector<float>(batch.images, batch.images + 10),
              (std::vector<float>{15, 10, 5, 0, 0, 35, 30, 25, 20, 0}));
    EXPECT_EQ(batch.objects[0].boxes[0].left, 3);
    EXPECT_EQ(batch.objects[0].boxes[0].right, 4);
    EXPECT_EQ(batch.objects[0].masks, (std::vector<std::uint8_t>{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  }
  EXPECT_TRUE(seen[0] && seen[1]);
}

TEST_F(Detection, MayEnlargeThePictureToFillItsRoom) {
  options.shape = {1, 6, 8};
  options.detection = {.masks = true};
  options.augment.mean = {};
  options.augment.std = {1, 1, 1};
  const Batch batch = load();
  EXPECT_EQ(batch.objects[0].height, 4);
  EXPECT_EQ(batch.objects[0].width, 8);
  EXPECT_EQ(batch.objects[0].scale, 2);
  EXPECT_EQ(batch.objects[0].boxes[0].right, 2);
  EXPECT_EQ(std::ranges::count(batch.objects[0].masks, 1), 4);
  // Pillow: Image.fromarray(uint8 [[10, 20, 30, 40], [50, 60, 70, 80]]).resize((8, 4), BILINEAR), the first row.
  const std::vector<float> pillow{10, 13, 18, 23, 28, 33, 38, 40};
  for (int x = 0; x < 8; ++x) EXPECT_NEAR(batch.images[x], pillow[static_cast<std::size_t>(x)], 1) << x;
  EXPECT_TRUE(std::all_of(batch.images + 32, batch.images + 48, [](float value) { return value == 0; }));
}

TEST_F(Detection, DrawsTheShorterEdgeOfEachPicture) {
  options.shape = {1, 10, 18};
  options.detection = {.masks = true};
  options.augment.min_size_train = {2, 4, 6, 8};
  options.augment.mean = {};
  options.augment.std = {1, 1, 1};
  std::map<int, int> seen;
  for (std::uint32_t epoch = 0; epoch < 64; ++epoch) {
    const Batch batch = load(epoch);
    const nn::PictureObjects& objects = batch.objects[0];
    const int times = objects.height / 2;
    ++seen[objects.height];
    EXPECT_EQ(objects.width, 2 * objects.height);
    EXPECT_EQ(objects.scale, static_cast<float>(times));
    // The object fills the upper left of 2 x 4 pixels; picture, box and mask grow together.
    EXPECT_EQ(objects.boxes[0].right, static_cast<float>(times));
    EXPECT_EQ(objects.boxes[0].bottom, static_cast<float>(times));
    EXPECT_EQ(std::ranges::count(objects.masks, 1), times * times);
    const auto filled = std::count_if(batch.images, batch.images + 180, [](float value) { return value > 0; });
    EXPECT_EQ(filled, objects.height * objects.width);
  }
  EXPECT_EQ(seen.size(), 4u);
  for (const auto& [height, count] : seen) EXPECT_GT(count, 5) << height;
}

TEST_F(Detection, DrawsNoPictureLargerThanItsRoom) {
  options.detection = {.masks = true};
  options.augment.min_size_train = {500};
  EXPECT_EQ(load().objects[0].width, 5);
}

TEST_F(Detection, RefusesDrawnSizesForAClassifier) {
  options.detection.reset();
  options.augment.min_size_train = {4};
  expect_error<UsageError>([&] { load(); }, "setting 'min-size-train': draws the size of a detector's pictures");
}

TEST_F(Detection, GivesMasksAsRunsToEvaluateBy) {
  options.detection = {.runs = true};
  const Batch batch = load();
  EXPECT_TRUE(batch.objects[0].masks.empty());
  EXPECT_EQ(batch.objects[0].runs, (std::vector<std::vector<std::uint32_t>>{{0, 1, 7}}));
}

TEST_F(Detection, GivesTheSameFromADecodedPicture) {
  RecordWriter writer(rec);
  add(writer, 7, {1, 2, 4, {10, 20, 30, 40, 50, 60, 70, 80}}, {2, 4, {object_at(0, 0, 1, 1, 2)}}, Encoding::png);
  writer.finish();
  const Batch plain = load();
  options.decoded_cache = 1 << 20;
  for (int round = 0; round < 2; ++round) {
    const Batch batch = round == 0 ? load() : (loader->start(0, {{0, 1}}), *loader->next());
    EXPECT_TRUE(std::equal(plain.images, plain.images + 15, batch.images));
    EXPECT_EQ(batch.objects[0].classes, plain.objects[0].classes);
    EXPECT_EQ(batch.objects[0].masks, plain.objects[0].masks);
    EXPECT_EQ(loader->kept_pictures().decodings, 1u);
  }
}

TEST_F(Detection, KeepsPicturesWithoutObjects) {
  write({2, 4, {}});
  EXPECT_TRUE(load().objects[0].boxes.empty());
}

TEST_F(Detection, RefusesWhatIsNotForThisNetwork) {
  options.classes = 2;
  const std::string refusal = "x.rec: record 0 at byte 0 (picture 7) shows an object of class 2, outside 0 to 1";
  expect_error([&] { load(); }, refusal + " | setting 'num-classes' is 2");
  options.has_fixed_classes = true;
  expect_error([&] { load(); }, refusal + " | the checkpoint has 2 classes: choose data");
  options.has_fixed_classes = false;
  Annotation box = object_at(0, 0, 1, 1);
  box.polygons.clear();
  write({2, 4, {box}});
  expect_error([&] { load(); },
               "x.rec: record 0 at byte 0 (picture 7) has a box without the mask that this network learns from");
  options.detection = {.runs = true};
  expect_error([&] { load(); }, "has a box without the mask that this network is judged by");
  options.detection->runs = false;
  EXPECT_EQ(load().objects[0].boxes.size(), 1u);
  RecordWriter writer(rec);
  writer.add(0, 1.0f, bytes_of(encode_image({1, 1, 1, {5}}, Encoding::raw)));
  writer.finish();
  expect_error([&] { load(); }, "has a class for the whole picture and no boxes");
}

TEST_F(Detection, RefusesOptionsThatWouldCutBoxes) {
  options.augment.pad_size = 4;
  expect_error<UsageError>([&] { load(); }, "setting 'pad-size': moves or cuts a picture's boxes");
  options.augment.pad_size = 0;
  options.augment.auto_augment = AutoAugment::rand;
  expect_error<UsageError>([&] { load(); }, "setting 'auto-augment'");
}

TEST_F(Detection, IsTheSameWithAnyNumberOfThreads) {
  constexpr int kCount = 40;
  RandomStream random(3, RandomUse::drawing, 0, 0);
  const auto below = [&](int limit) { return static_cast<int>(random.below(static_cast<std::uint32_t>(limit))); };
  RecordWriter writer(rec);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    Image image{3, 8 + below(20), 8 + below(20), {}};
    image.pixels.resize(static_cast<std::size_t>(3 * image.h * image.w));
    for (auto& pixel : image.pixels) pixel = static_cast<std::uint8_t>(below(256));
    Annotations annotations{image.h, image.w, {}};
    for (int k = below(5); k > 0; --k)
      annotations.objects.push_back(object_at(below(6), below(6), 1 + below(20), 1 + below(20), below(3)));
    add(writer, i, image, annotations);
  }
  writer.finish();
  options.shape = {3, 24, 24};
  options.detection = {.masks = true};
  options.augment.random_mirror = true;
  options.augment.max_random_h = 20;
  options.augment.min_size_train = {9, 12, 17};
  const auto all = [&](int threads) {
    options.threads = threads;
    Loader each(rec, options);
    each.start(1, {{0, 30}, {30, 10}});
    std::vector<float> numbers;
    while (const auto batch = each.next()) {
      numbers.insert(numbers.end(), batch->images, batch->images + batch->n * options.shape.size());
      for (int i = 0; i < batch->n; ++i) {
        const nn::PictureObjects& objects = batch->objects[i];
        for (const nn::Box& box : objects.boxes)
          numbers.insert(numbers.end(), {box.left, box.top, box.right, box.bottom});
        numbers.insert(numbers.end(), objects.classes.begin(), objects.classes.end());
        numbers.insert(numbers.end(), objects.masks.begin(), objects.masks.end());
      }
    }
    return numbers;
  };
  EXPECT_EQ(all(1), all(5));
}

// Eight pictures of 2 x 4 and five of 4 x 2, by turns, in batches of 3 that are padded to 3 x 5 or 5 x 3.
class DetectionInGroups : public Detection {
 protected:
  DetectionInGroups() {
    RecordWriter writer(rec);
    for (std::uint64_t i = 0; i < 13; ++i) {
      const bool is_wide = i % 2 == 0 || i == 11;
      Image image{1, is_wide ? 2 : 4, is_wide ? 4 : 2, {}};
      image.pixels.assign(8, static_cast<std::uint8_t>(12 + 2 * i));
      add(writer, i, image, {image.h, image.w, {object_at(0, 0, 1, 1)}});
    }
    writer.finish();
    options.shape = {1, 5, 5};
    options.detection = {.shorter_edge = 2, .masks = true, .groups = {{3, 5}, {5, 3}}};
    options.group_batch = 3;
  }
};

TEST_F(DetectionInGroups, EachBatchHasTheSizeOfItsGroup) {
  Loader grouping(rec, options);
  ASSERT_EQ(grouping.groups().size(), 2u);
  EXPECT_EQ(grouping.groups()[0].shape, (nn::Shape{1, 3, 5}));
  EXPECT_EQ(grouping.groups()[0].samples, 8u);
  EXPECT_EQ(grouping.groups()[1].samples, 5u);
  const std::vector<Slice> slices = {{0, 3}, {3, 3}, {6, 3}, {9, 2}, {11, 2}};
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    grouping.start(epoch, slices);
    std::vector<bool> seen(13);
    while (const auto batch = grouping.next()) {
      const bool is_wide = batch->shape == nn::Shape{1, 3, 5};
      EXPECT_TRUE(is_wide || batch->shape == (nn::Shape{1, 5, 3}));
      for (int i = 0; i < batch->n; ++i) {
        const nn::PictureObjects& objects = batch->objects[i];
        EXPECT_EQ(objects.height, is_wide ? 2 : 4);
        EXPECT_EQ(objects.width, is_wide ? 4 : 2);
        EXPECT_EQ(objects.masks.size(), 15u);
        const std::uint32_t id = batch->sample_ids[i];
        EXPECT_FALSE(seen[id]);
        seen[id] = true;
        const float* const image = batch->images + i * 15;
        EXPECT_EQ(image[0], static_cast<float>(id) + 1);
        EXPECT_EQ(std::count(image, image + 15, image[0]), 8);
        EXPECT_EQ(std::count(image, image + 15, 0.0f), 7);
      }
    }
    EXPECT_EQ(std::ranges::count(seen, true), 13);
  }
}

TEST_F(DetectionInGroups, WithoutShufflingTheyComeInTheOrderOfTheFile) {
  options.shuffle = false;
  Loader grouping(rec, options);
  grouping.start(0, {{0, 3}, {3, 3}, {6, 3}, {9, 2}, {11, 2}});
  std::vector<std::uint32_t> ids;
  while (const auto batch = grouping.next()) ids.insert(ids.end(), batch->sample_ids, batch->sample_ids + batch->n);
  EXPECT_EQ(ids, (std::vector<std::uint32_t>{0, 2, 4, 1, 3, 5, 6, 8, 10, 11, 12, 7, 9}));
}

TEST_F(DetectionInGroups, WithoutBatchesOfTheirOwnOnlyTheScaleIsThatOfTheGroup) {
  options.group_batch = 0;
  options.detection->shorter_edge = 0;
  options.detection->groups = {{3, 5}, {4, 2}};
  Loader plain(rec, options);
  EXPECT_TRUE(plain.groups().empty());
  plain.start(0, {{0, 13}});
  const auto batch = plain.next();
  EXPECT_EQ(batch->shape, options.shape);
  for (int i = 0; i < batch->n; ++i) {
    const nn::PictureObjects& objects = batch->objects[i];
    const bool is_wide = objects.original_width == 4;
    EXPECT_EQ(objects.height, is_wide ? 3 : 4);
    EXPECT_EQ(objects.width, is_wide ? 5 : 2);
    EXPECT_EQ(objects.masks.size(), 25u);
  }
}

TEST_F(DetectionInGroups, RefusesAGroupWithoutPicturesToTrainOn) {
  options.detection->groups.push_back({4, 4});
  expect_error<UsageError>([&] { Loader(rec, options); }, "setting 'aspect-groups': no picture of ");
  options.shuffle = false;
  EXPECT_EQ(Loader(rec, options).groups()[2].samples, 0u) << "an evaluation has what it has";
}

// The picture of the sixth record, one of 4 x 2, loses its first byte.
void damage_sixth(const Path& rec) {
  std::string bytes = read_file(rec);
  const std::string magic = "DTPX";
  std::size_t at = 0;
  for (int i = 0; i < 6; ++i) at = bytes.find(magic, at + 1);
  bytes[at] = 'X';
  write_file_atomic(rec, bytes);
}

TEST_F(DetectionInGroups, ARecordInThePlaceOfABadOneFitsIntoTheBatch) {
  damage_sixth(rec);
  options.max_bad_records = 1;
  Loader grouping(rec, options);
  EXPECT_EQ(grouping.groups()[1].samples, 5u);
  grouping.start(0, {{0, 3}, {3, 3}, {6, 3}, {9, 2}, {11, 2}});
  int samples = 0;
  while (const auto batch = grouping.next()) samples += batch->n;
  EXPECT_EQ(samples, 13);
  EXPECT_EQ(grouping.bad_records(), 1);
}

TEST_F(DetectionInGroups, AnEvaluationLeavesABadRecordOutWithItsObjects) {
  damage_sixth(rec);
  options.max_bad_records = 1;
  options.shuffle = false;
  options.leave_out_bad = true;
  Loader grouping(rec, options);
  grouping.start(0, {{0, 3}, {3, 3}, {6, 3}, {9, 2}, {11, 2}});
  std::vector<std::uint32_t> ids;
  while (const auto batch = grouping.next()) {
    for (int i = 0; i < batch->n; ++i) {
      const std::uint32_t id = batch->sample_ids[i];
      ids.push_back(id);
      EXPECT_EQ(batch->images[i * 15], static_cast<float>(id) + 1);
      EXPECT_EQ(batch->objects[i].height, batch->shape.h == 3 ? 2 : 4) << id;
    }
  }
  EXPECT_EQ(ids, (std::vector<std::uint32_t>{0, 2, 4, 1, 3, 6, 8, 10, 11, 12, 7, 9}));
  EXPECT_EQ(grouping.bad_records(), 1);
}

}  // namespace
}  // namespace dtrain::data
