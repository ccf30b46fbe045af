// Pictures that are decoded once: which are kept, and that no pixel depends on it.
#include "loader/decoded_pictures.hpp"

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "data/loader/noise_records.hpp"

namespace dtrain::data {
namespace {

constexpr std::uint64_t kPlenty = 1 << 30;
constexpr std::uint32_t kRecords = 16;
constexpr int kSide = 64;  // of the pictures

std::uint64_t cost_of_one() {
  DecodedPictures one(1, kPlenty);
  one.keep(0, noise(3, kSide, 0));
  return one.kept().bytes;
}

std::uint64_t bytes_for(std::uint64_t pictures) {
  return pictures * cost_of_one() + kRecords * sizeof(std::atomic<const Image*>);
}

Path write_photos(const TemporaryFolder& folder, Encoding encoding = Encoding::jpeg,
                  const std::function<void(std::uint32_t, Sample&)>& change = {}) {
  return write_records(folder, kRecords, 3, [&](std::uint32_t i, Sample& sample) {
    sample.payload = encode_image(noise(3, kSide, i), encoding);
    if (change) change(i, sample);
  });
}

TEST(DecodedPictures, KeepTheFirstPictureOfARecord) {
  DecodedPictures pictures(3, kPlenty);
  EXPECT_EQ(pictures.find(1), nullptr);
  pictures.keep(1, noise(3, 8, 1));
  const Image* const kept = pictures.find(1);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(kept->pixels, noise(3, 8, 1).pixels);
  const std::uint64_t bytes = pictures.kept().bytes;
  pictures.keep(1, noise(3, 8, 1));
  EXPECT_EQ(pictures.find(1), kept);
  EXPECT_EQ(pictures.find(0), nullptr);
  EXPECT_EQ(pictures.kept().pictures, 1u);
  EXPECT_EQ(pictures.kept().bytes, bytes);
  EXPECT_EQ(pictures.kept().decodings, 2u);
}

TEST(DecodedPictures, StayWithinTheBudgetWithAllThatTheyCost) {
  const Image picture = noise(3, 100, 0);
  const std::uint64_t pixels = picture.pixels.size(), slots = 10 * sizeof(std::atomic<const Image*>);
  DecodedPictures exact(10, slots + 3 * pixels);
  for (std::uint32_t i = 0; i < 10; ++i) exact.keep(i, picture);
  EXPECT_EQ(exact.kept().pictures, 2u) << "the pixels alone are not the cost";
  EXPECT_GT(exact.kept().bytes, 2 * (pixels + sizeof(Image)));
  EXPECT_LE(exact.kept().bytes + slots, slots + 3 * pixels);
  EXPECT_NE(exact.find(1), nullptr);
  EXPECT_EQ(exact.find(2), nullptr) << "what comes first stays";
  DecodedPictures less_than_slots(10, slots - 1);
  less_than_slots.keep(0, noise(1, 8, 0));
  EXPECT_EQ(less_than_slots.kept().pictures, 0u);
}

TEST(DecodedPictures, AreKeptOnceByThreadsThatDecodeTheSame) {
  constexpr std::uint32_t kEach = 200;
  for (const bool is_short : {false, true}) {
    const std::uint64_t budget = is_short ? 40 * cost_of_one() : kPlenty;
    DecodedPictures pictures(kEach, budget);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (std::uint32_t i = 0; i < kEach; ++i) {
          const Image picture = noise(3, kSide, i);
          pictures.keep(i, picture);
          const Image* const found = pictures.find(i);
          if (found) {
            EXPECT_EQ(found->pixels, picture.pixels) << i;
          }
        }
      });
    }
    threads.clear();
    std::uint64_t found = 0;
    for (std::uint32_t i = 0; i < kEach; ++i) found += pictures.find(i) ? 1 : 0;
    EXPECT_EQ(pictures.kept().pictures, found);
    EXPECT_EQ(pictures.kept().bytes, found * cost_of_one());
    EXPECT_EQ(pictures.kept().decodings, 4 * kEach);
    if (is_short) {
      EXPECT_LE(pictures.kept().bytes, budget);
    } else {
      EXPECT_EQ(found, kEach);
    }
  }
}

struct Cut {
  const char* name;
  Augment augment;
};

std::vector<Cut> cuts() {
  return {{"window", {.random_mirror = true, .random_resized_crop = true}},
          {"window of colours", {.random_resized_crop = true, .max_random_h = 36}},
          {"window of a warp", {.random_resized_crop = true, .max_random_rotate_angle = 10}},
          {"crop", {.random_crop = true, .random_mirror = true}},
          {"pad and crop", {.pad_size = 3, .random_crop = true, .random_mirror = true, .cutout = 4}},
          {"resize", {.resize = 20, .random_crop = true}}};
}

LoaderOptions cut_by(const Augment& augment) {
  LoaderOptions chosen = options(1);
  chosen.shape = {3, 12, 12};
  chosen.augment = augment;
  chosen.augment.mean = {120, 110.5f, 100};
  chosen.augment.std = {60, 61, 62};
  chosen.repeats = 2;
  return chosen;
}

// The images of epoch `last`, after those from `first` on.
std::vector<float> images_after(Loader& loader, const LoaderOptions& chosen, std::uint32_t first, std::uint32_t last) {
  std::vector<float> images;
  for (std::uint32_t epoch = first; epoch <= last; ++epoch) {
    images.clear();
    loader.start(epoch, slices_of(kRecords, 5));
    while (const auto batch = loader.next()) {
      const std::vector<float> some = images_of(*batch, chosen.shape);
      images.insert(images.end(), some.begin(), some.end());
    }
  }
  return images;
}

// Each sample is made from the whole picture, however many are kept.
TEST(DecodedPictures, DoNotShowInTheSamples) {
  const TemporaryFolder folder;
  const Path rec = write_photos(folder);
  for (const auto& [name, augment] : cuts()) {
    LoaderOptions chosen = cut_by(augment);
    const EpochOrder order = repeated({epoch_order(chosen.seed, 2, kRecords), {}}, chosen.repeats);
    std::vector<float> expected, sample(static_cast<std::size_t>(chosen.shape.size()));
    for (std::size_t i = 0; i < kRecords; ++i) {
      Image picture;
      const std::uint32_t record = order.records[i];
      decode_image(bytes_of(encode_image(noise(3, kSide, record), Encoding::jpeg)), 3, picture);
      data::augment(picture, chosen.augment, {chosen.seed, 2, record, order.copies[i]}, chosen.shape, sample);
      expected.insert(expected.end(), sample.begin(), sample.end());
    }
    for (const std::uint64_t bytes : {std::uint64_t{1}, bytes_for(kRecords / 4), kPlenty}) {
      for (const std::uint32_t first_epoch : {0u, 2u}) {  // of a worker that was there, and of one that joins
        for (const int threads : {1, 3}) {
          for (const bool as_bytes : {false, true}) {
            chosen.decoded_cache = bytes;
            chosen.threads = threads;
            chosen.as_bytes = as_bytes;
            Loader loader(rec, chosen);
            EXPECT_EQ(images_after(loader, chosen, first_epoch, 2), expected)
                << name << ", " << bytes << " bytes, from epoch " << first_epoch << ", " << threads << " threads"
                << (as_bytes ? ", as bytes" : "");
          }
        }
      }
    }
  }
}

TEST(DecodedPictures, AreDecodedOnceWhileThereIsRoom) {
  const TemporaryFolder folder;
  const Path rec = write_photos(folder);
  for (const int threads : {1, 3}) {
    LoaderOptions chosen = options(threads);
    chosen.decoded_cache = kPlenty;
    Loader all(rec, chosen);
    images_after(all, chosen, 0, 2);
    EXPECT_EQ(all.kept_pictures().pictures, kRecords);
    EXPECT_EQ(all.kept_pictures().decodings, kRecords) << "three epochs on " << threads << " threads";
    chosen.decoded_cache = bytes_for(10);
    Loader some(rec, chosen);
    images_after(some, chosen, 0, 2);
    EXPECT_EQ(some.kept_pictures().pictures, 10u);
    EXPECT_LE(some.kept_pictures().bytes, chosen.decoded_cache);
    EXPECT_EQ(some.kept_pictures().decodings, kRecords + 2 * (kRecords - 10));
    chosen.decoded_cache = 0;
    Loader none(rec, chosen);
    images_after(none, chosen, 0, 0);
    EXPECT_EQ(none.kept_pictures().decodings, 0u);
  }
}

TEST(DecodedPictures, AreNotMadeOfRawRecords) {
  const TemporaryFolder folder;
  const Path rec = write_photos(folder, Encoding::raw);
  LoaderOptions chosen = options();
  Loader without(rec, chosen);
  const std::vector<float> expected = images_after(without, chosen, 0, 1);
  chosen.decoded_cache = kPlenty;
  for (const bool as_bytes : {false, true}) {
    chosen.as_bytes = as_bytes;
    Loader loader(rec, chosen);
    EXPECT_EQ(images_after(loader, chosen, 0, 1), expected);
    EXPECT_EQ(loader.kept_pictures().decodings, 0u);
  }
}

// Those of a PNG are the same with and without, as it is decoded whole in any case.
TEST(DecodedPictures, LeaveBadRecordsAsTheyAre) {
  const TemporaryFolder folder;
  const Path rec = write_photos(folder, Encoding::png, [](std::uint32_t i, Sample& sample) {
    if (i == 4) sample.payload = "no image";
    if (i == 9) sample.payload.resize(sample.payload.size() / 2);
  });
  LoaderOptions chosen = options();
  const auto error_of = [&] {
    try {
      load(rec, chosen, 1, 5);
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string error = error_of();
  EXPECT_NE(error.find("x.rec: record "), std::string::npos) << error;
  chosen.decoded_cache = kPlenty;
  EXPECT_EQ(error_of(), error);

  chosen.max_bad_records = 2;
  Loader keeping(rec, chosen);
  const std::vector<float> images = images_after(keeping, chosen, 0, 2);
  EXPECT_EQ(keeping.kept_pictures().pictures, kRecords - 2);
  chosen.decoded_cache = 0;
  Loader without(rec, chosen);
  EXPECT_EQ(images, images_after(without, chosen, 0, 2));
  EXPECT_EQ(keeping.bad_records(), 2);
  EXPECT_EQ(keeping.bad_records_warning(), without.bad_records_warning());
}

}  // namespace
}  // namespace dtrain::data
