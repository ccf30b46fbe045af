#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "common/few_threads.hpp"
#include "data/loader/noise_records.hpp"

namespace dtrain::data {
namespace {

TEST(Loader, GivesTheSlicesOfTheEpochsOrderInTheirOrder) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 100);
  const Everything all = load(rec, options(), 3, 7);
  EXPECT_EQ(all.ids, epoch_order(5, 3, 100));
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(all.labels[i], static_cast<std::int32_t>(all.ids[i] % 3));
}

TEST(Loader, TakesSlicesOneByOneToo) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 100);
  const Everything all = load(rec, options(), 3, 7);
  Loader loader(rec, options());
  loader.start(3, {});
  EXPECT_FALSE(loader.next());
  for (const Slice slice : {Slice{50, 10}, Slice{0, 7}, Slice{90, 10}}) {
    loader.add(slice);
    loader.add({slice.first, 1});
    for (const int count : {slice.count, 1}) {
      const auto batch = loader.next();
      ASSERT_EQ(batch->n, count);
      for (int i = 0; i < count; ++i)
        EXPECT_EQ(batch->sample_ids[i], all.ids[slice.first + static_cast<std::size_t>(i)]);
      EXPECT_TRUE(std::equal(batch->images, batch->images + 108 * count, &all.images[slice.first * 108]));
    }
  }
  EXPECT_FALSE(loader.next());
}

TEST(Loader, PixelsAreTheAugmentedRecordKeyedByItsPosition) {
  const TemporaryFolder folder;
  const LoaderOptions chosen = options();
  const Everything all = load(write_records(folder, 40), chosen, 2, 16);
  std::vector<float> expected(108);
  for (std::size_t i = 0; i < 40; ++i) {
    augment(noise(3, 8, all.ids[i]), chosen.augment, {5, 2, all.ids[i]}, chosen.shape, expected);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), &all.images[i * 108])) << "sample " << i;
  }
}

TEST(Loader, CopiesOfARecordAreAugmentedAnewUnderNamesOfTheirOwnAndKeepItsLabel) {
  const TemporaryFolder folder;
  LoaderOptions chosen = options();
  chosen.repeats = 3;
  const Path rec = write_records(folder, 40);
  const Everything all = load(rec, chosen, 2, 16), plain = load(rec, options(), 2, 16);
  ASSERT_EQ(all.ids.size(), 40u);
  std::vector<float> expected(108);
  int same = 0;
  for (std::uint32_t i = 0; i < 40; ++i) {
    EXPECT_EQ(all.ids[i], plain.ids[i / 3] + i % 3 * 40);
    EXPECT_EQ(all.labels[i], plain.labels[i / 3]);
    const std::uint32_t record = plain.ids[i / 3];
    augment(noise(3, 8, record), chosen.augment, {5, 2, record, i % 3}, chosen.shape, expected);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), &all.images[i * 108])) << "sample " << i;
    same += std::equal(expected.begin(), expected.end(), &plain.images[i / 3 * 108]);
  }
  EXPECT_EQ(same, 14) << "only the first of three is what comes without copies";
}

TEST(Loader, ABalancedEpochHasEquallyManyOfEachClass) {
  const TemporaryFolder folder;
  const auto mostly_zero = [](std::uint32_t i, Sample& sample) { sample.label = i < 90 ? 0 : i < 98 ? 1.0f : 2.0f; };
  const Path rec = write_records(folder, 100, 3, mostly_zero);
  LoaderOptions chosen = options();
  chosen.balanced = true;
  const Everything all = load(rec, chosen, 1, 9);
  EXPECT_EQ(all.ids.size(), 100u);
  EXPECT_EQ(std::set(all.ids.begin(), all.ids.end()).size(), 100u) << "each copy draws its own dropout";
  for (std::int32_t label = 0; label < 3; ++label) EXPECT_GE(std::ranges::count(all.labels, label), 33);
  EXPECT_TRUE(all == load(rec, chosen, 1, 32));
  EXPECT_FALSE(all == load(rec, chosen, 2, 32));
  chosen.num_examples = 98;
  EXPECT_EQ(std::ranges::count(load(rec, chosen, 1, 9).labels, 2), 0) << "no record of it is in use";
  chosen.shuffle_block = 4;
  EXPECT_THROW(load(rec, chosen, 1, 9), SettingError);
}

TEST(Loader, KnowsTheOrderOfTheRecordsOfAnEpoch) {
  TemporaryFolder folder;
  const Path rec = write_records(folder, 40);
  LoaderOptions chosen = options();
  chosen.num_examples = 25;
  EXPECT_EQ(Loader(rec, chosen).record_order(), order_of_records(RecordSet({rec}), 25));
}

TEST(Loader, TheNumberOfThreadsDoesNotShow) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 203);
  for (const std::uint32_t epoch : {0u, 1u}) {
    const Everything one = load(rec, options(1), epoch, 32);
    EXPECT_EQ(one.ids.size(), 203u);
    EXPECT_TRUE(one == load(rec, options(2), epoch, 32));
    EXPECT_TRUE(one == load(rec, options(5), epoch, 32));
    EXPECT_TRUE(one == load(rec, options(5), epoch, 9)) << "nor does the size of the batches";
  }
}

TEST(Loader, RecordsStoredInPartsAndWholeOnesMix) {
  const TemporaryFolder folder;
  const auto with_magic = [](std::uint32_t which) {  // the container cuts a record where its magic stands in it
    Image image = noise(3, 8, which);
    const std::uint32_t magic = 0xced7230a;
    if (which % 2 == 0) std::memcpy(&image.pixels[8], &magic, sizeof(magic));
    return image;
  };
  const Path rec = write_records(folder, 20, 3, [&](std::uint32_t i, Sample& sample) {
    sample.payload = encode_image(with_magic(i), Encoding::raw);
  });
  LoaderOptions chosen = options(1);
  chosen.shape = {3, 8, 8};
  chosen.shuffle = false;
  chosen.augment = {};
  const Everything all = load(rec, chosen, 0, 20);
  std::vector<float> expected(192);
  for (std::uint32_t i = 0; i < 20; ++i) {
    augment(with_magic(i), {}, {5, 0, i}, chosen.shape, expected);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), &all.images[i * 192])) << "sample " << i;
  }
}

TEST(Loader, WithoutShufflingItIsTheOrderOfTheFile) {
  const TemporaryFolder folder;
  LoaderOptions chosen = options();
  chosen.shuffle = false;
  chosen.num_examples = 21;
  const Everything all = load(write_records(folder, 30), chosen, 0, 4);
  std::vector<std::uint32_t> expected(21);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(all.ids, expected);
}

TEST(Loader, MoreExamplesThanTheFileHasMeansAll) {
  const TemporaryFolder folder;
  LoaderOptions chosen = options();
  chosen.num_examples = 50000;
  EXPECT_EQ(Loader(write_records(folder, 5), chosen).size(), 5u);
}

TEST(Loader, BatchesAreAlignedAndStayAsTheyAreWhileHeldEvenWithoutTheLoader) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 90);
  std::vector<Batch> held;
  {
    Loader loader(rec, options());
    loader.start(1, slices_of(90, 7));
    while (auto batch = loader.next()) held.push_back(*batch);
  }
  const Everything expected = load(rec, options(1), 1, 7);
  const float* at = expected.images.data();
  for (const Batch& batch : held) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(batch.images) % 64, 0u);
    EXPECT_TRUE(std::equal(batch.images, batch.images + batch.n * 108, at));
    at += batch.n * 108;
  }
}

TEST(Loader, BuffersAreUsedAgain) {
  const TemporaryFolder folder;
  Loader loader(write_records(folder, 100), options());
  std::set<const float*> buffers;
  loader.start(0, slices_of(100, 4));
  while (const auto batch = loader.next()) buffers.insert(batch->images);
  EXPECT_LE(buffers.size(), 6u);  // four in the queue, one held, one that a thread has just let go of
}

TEST(Loader, AnEmptySliceIsAnEmptyBatch) {
  const TemporaryFolder folder;
  Loader loader(write_records(folder, 10), options());
  loader.start(0, {{0, 3}, {3, 0}, {3, 2}});
  EXPECT_EQ(loader.next()->n, 3);
  EXPECT_EQ(loader.next()->n, 0);
  EXPECT_EQ(loader.next()->n, 2);
  EXPECT_FALSE(loader.next());
}

TEST(Loader, StartDropsWhatIsQueued) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 200);
  Loader loader(rec, options(3));
  EXPECT_FALSE(loader.next());
  for (std::uint32_t epoch = 0; epoch < 20; ++epoch) {
    loader.start(epoch, slices_of(200, 16));
    for (std::uint32_t i = 0; i < epoch % 4; ++i) ASSERT_TRUE(loader.next());
  }
  loader.start(7, slices_of(200, 16));
  EXPECT_TRUE(drain(loader, 108) == load(rec, options(1), 7, 16));
}

TEST(Loader, CanEndAtAnyMoment) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 200);
  for (int i = 0; i < 40; ++i) {
    Loader loader(rec, options(1 + i % 4));
    if (i % 8 != 0) loader.start(0, slices_of(200, 32));
    if (i % 3 == 0) std::ignore = loader.next();
    std::this_thread::sleep_for(std::chrono::microseconds(37 * (i % 5)));
  }
}

TEST(Loader, ALabelOutOfRangeNamesRecordLabelAndOptionAfterTheGoodBatches) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 30, 3, [](std::uint32_t i, Sample& sample) {
    if (i >= 17) sample.label = 3 + static_cast<float>(i);
  });
  LoaderOptions chosen = options(3);
  chosen.shuffle = false;
  chosen.max_bad_records = 100;  // a wrong label is no damaged record
  Loader loader(rec, chosen);
  for (int round = 0; round < 3; ++round) {
    loader.start(0, slices_of(30, 5));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(loader.next()->n, 5);
    for (const char* text : {"x.rec: record 17 at byte", "label 20, outside 0 to 2", "setting 'num-classes'"})
      expect_error([&] { std::ignore = loader.next(); }, text);
  }
}

TEST(Loader, ALabelBesideTheClassesOfACheckpointAsksForOtherData) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 3, 3, [](std::uint32_t, Sample& sample) { sample.label = 5; });
  LoaderOptions chosen = options();
  chosen.has_fixed_classes = true;
  expect_error([&] { load(rec, chosen, 0, 3); },
               "label 5, outside 0 to 2 | the checkpoint has 3 classes: choose data with the classes");
}

TEST(Loader, AFractionIsNoLabel) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 3, 3, [](std::uint32_t, Sample& sample) { sample.label = 1.5f; });
  expect_error([&] { load(rec, options(), 0, 3); }, "label 1.5");
}

TEST(Loader, AColourFileForAGreyNetworkNamesBothShapesAndTheOption) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 4);
  LoaderOptions chosen = options();
  chosen.shape = {1, 6, 6};
  for (const char* text : {"3,8,8", "1,6,6", "setting 'image-shape' 3,6,6"})
    expect_error([&] { Loader(rec, chosen); }, text);
}

TEST(Loader, GreyImagesFeedAColourNetworkInWhateverOrderTheyCome) {
  for (const bool grey_first : {false, true}) {
    const TemporaryFolder folder;
    const Path rec = write_records(folder, 40, 3, [&](std::uint32_t i, Sample& sample) {
      if ((i < 20) == grey_first) sample.payload = encode_image(noise(1, 8, i), Encoding::raw);
    });
    LoaderOptions chosen = options();
    std::vector<std::string> told;
    chosen.remote.tell = [&](const std::string& text) { told.push_back(text); };
    EXPECT_EQ(load(rec, chosen, 0, 4).ids.size(), 40u) << grey_first;
    ASSERT_EQ(told.size(), grey_first ? 1u : 0u);
    if (grey_first) {
      EXPECT_NE(told[0].find("its first pictures are grey"), std::string::npos) << told[0];
    }
  }
}

TEST(Loader, SaysOnceThatAColourNetworkSeesGreyImages) {
  const TemporaryFolder folder;
  LoaderOptions chosen = options();
  chosen.augment = {};
  std::vector<std::string> told;
  chosen.remote.tell = [&](const std::string& text) { told.push_back(text); };
  const Everything all = load(write_records(folder, 20, 1), chosen, 0, 4);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("a network that takes colour sees a grey picture in all 3 channels"), std::string::npos)
      << told[0];
  EXPECT_TRUE(std::equal(&all.images[0], &all.images[36], &all.images[72])) << "all channels of a picture are equal";
}

TEST(Loader, OptionsOutOfTheirRangeAreNamed) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 4);
  LoaderOptions chosen = options();
  chosen.threads = 0;
  expect_error<UsageError>([&] { Loader(rec, chosen); }, "setting 'data-nthreads': must be between 1 and 1024, not 0");
  chosen = options();
  chosen.shape = {2, 8, 8};
  expect_error<UsageError>([&] { Loader(rec, chosen); }, "setting 'image-shape': 2,8,8");
  chosen = options();
  chosen.augment.pad_size = -1;
  expect_error<UsageError>([&] { Loader(rec, chosen); }, "setting 'pad-size'");
  chosen.augment = {.cutout = 7};
  expect_error<UsageError>([&] { Loader(rec, chosen); }, "setting 'cutout': 7 is larger than an image of 6x6");
}

TEST(Loader, RefusesBoxesOfObjectDetectionAsClasses) {
  TemporaryFolder folder;
  RecordWriter writer(folder / "x.rec");
  const std::vector<float> labels{2, 5, 1, 0.1f, 0.1f, 0.5f, 0.5f};
  writer.add(0, labels, bytes_of(encode_image(noise(3, 8, 0), Encoding::raw)));
  writer.finish();
  expect_error(
      [&] {
        Loader(folder / "x.rec", {.shape = {3, 8, 8}, .classes = 3});
      },
      "x.rec: record 0 at byte 0 has boxes for object detection in place of a class");
}

TEST(Loader, SaysSoWhereTheSystemGivesNoThreads) {
  TemporaryFolder folder;
  const Path file = write_records(folder, 6);
  const FewThreads few;
  expect_error<Error>(
      [&] {
        Loader(file, {.shape = {3, 8, 8}, .classes = 3, .threads = 400});
      },
      "cannot start a thread that loads data");
}

}  // namespace
}  // namespace dtrain::data
