// Records that cannot be read, and those that replace them.
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include <dtrain/data/labels.hpp>

#include "data/loader/noise_records.hpp"

namespace dtrain::data {
namespace {

const auto damage_some = [](std::uint32_t i, Sample& sample) {
  if (i == 4 || i == 5 || i == 19) sample.payload = "no image";
};

TEST(Loader, ABadRecordIsAnErrorByDefaultThatNamesItAndTheOption) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 20, 3, damage_some);
  LoaderOptions chosen = options();
  chosen.shuffle = false;
  for (const char* text : {"x.rec: record 4 at byte", "setting 'max-bad-records'", "dtrain data verify"})
    expect_error([&] { load(rec, chosen, 0, 6); }, text);
  chosen.names_bad_limit = false;
  try {
    load(rec, chosen, 0, 6);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_EQ(error.hint(), "dtrain data verify " + rec.string() + " lists them");
  }
}

TEST(Loader, BadRecordsAreReplacedByTheNextGoodOneCountedOnceAndNamed) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 20, 3, damage_some);
  LoaderOptions chosen = options();
  chosen.shuffle = false;
  chosen.max_bad_records = 3;
  chosen.augment = {};
  std::vector<std::string> told;
  chosen.remote.tell = [&](const std::string& text) { told.push_back(text); };
  Loader loader(rec, chosen);
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    loader.start(epoch, slices_of(20, 6));
    const Everything all = drain(loader, 108);
    const auto image = [&](std::size_t i) { return std::vector(&all.images[i * 108], &all.images[i * 108] + 108); };
    EXPECT_EQ(image(4), image(6));
    EXPECT_EQ(image(5), image(6));
    EXPECT_EQ(image(19), image(0));
    EXPECT_EQ(all.labels[19], 0);
    EXPECT_EQ(all.ids[19], 19u);
    EXPECT_EQ(loader.bad_records(), 3);
    EXPECT_NE(loader.first_bad_record().find("record 4 at byte"), std::string::npos) << loader.first_bad_record();
  }
  ASSERT_EQ(told.size(), 1u) << "only the first one, when it came up";
  EXPECT_NE(told[0].find("record 4 at byte"), std::string::npos) << told[0];
}

TEST(Loader, AnEvaluationLeavesBadRecordsOut) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 20, 3, damage_some);
  LoaderOptions chosen = options();
  chosen.shuffle = false;
  chosen.max_bad_records = 3;
  chosen.augment = {};
  Loader whole(rec, chosen);
  whole.start(0, slices_of(20, 2));
  const Everything replaced = drain(whole, 108);
  EXPECT_NE(whole.bad_records_warning().find("3 records could not be decoded and were replaced; the first: "),
            std::string::npos);
  chosen.leave_out_bad = true;
  for (const bool as_bytes : {false, true}) {
    chosen.as_bytes = as_bytes;
    Loader loader(rec, chosen);
    EXPECT_EQ(loader.bad_records_warning(), "");
    loader.start(0, slices_of(20, 2));
    std::vector<int> sizes;
    std::vector<std::uint32_t> ids;
    while (const auto batch = loader.next()) {
      sizes.push_back(batch->n);
      const std::vector<float> images = images_of(*batch, chosen.shape);
      for (int i = 0; i < batch->n; ++i) {
        const std::uint32_t id = batch->sample_ids[i];
        ids.push_back(id);
        EXPECT_EQ(batch->labels[i], static_cast<int>(id % 3));
        EXPECT_TRUE(std::equal(&images[static_cast<std::size_t>(i) * 108],
                               &images[static_cast<std::size_t>(i) * 108] + 108,
                               &replaced.images[id * std::size_t{108}]))
            << id << " as bytes: " << as_bytes;
      }
    }
    EXPECT_EQ(sizes, (std::vector<int>{2, 2, 0, 2, 2, 2, 2, 2, 2, 1})) << "4 and 5 are a batch, 19 is half of one";
    EXPECT_EQ(ids, (std::vector<std::uint32_t>{0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}));
    EXPECT_EQ(loader.bad_records(), 3);
    EXPECT_NE(loader.bad_records_warning().find("3 records could not be decoded and were left out"), std::string::npos);
    EXPECT_NE(loader.bad_records_warning().find("record 4 at byte"), std::string::npos);
  }
}

TEST(Loader, ABatchIsPackedWithoutTheSampleInItsMiddle) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 6, 3, [](std::uint32_t i, Sample& sample) {
    if (i == 1 || i == 2) sample.payload = "no image";
  });
  LoaderOptions chosen = options();
  chosen.shuffle = false;
  chosen.max_bad_records = 2;
  chosen.leave_out_bad = true;
  Loader loader(rec, chosen);
  loader.start(0, {{0, 6}});
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->n, 4);
  EXPECT_EQ(std::vector(batch->sample_ids, batch->sample_ids + 4), (std::vector<std::uint32_t>{0, 3, 4, 5}));
  EXPECT_EQ(std::vector(batch->labels, batch->labels + 4), (std::vector<std::int32_t>{0, 0, 1, 2}));
}

// Overwrites the frame's first word of some records, so that not even their labels can be read.
void break_frames(const Path& rec, std::initializer_list<std::size_t> positions) {
  std::vector<std::uint64_t> offsets;
  {
    const RecordFile file(rec);
    for (const std::size_t position : positions) offsets.push_back(file.offset(position));
  }
  std::string bytes = read_file(rec);
  for (const std::uint64_t offset : offsets) bytes[offset] ^= 1;
  write_file_atomic(rec, bytes);
}

TEST(Loader, BalancesRecordsThatCannotBeReadAsThoseInTheirPlace) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 30);
  break_frames(rec, {4, 28});
  LoaderOptions chosen = options();
  chosen.balanced = true;
  expect_error([&] { load(rec, chosen, 0, 6); }, "2 records cannot be read, more than setting 'max-bad-records' 0");
  chosen.max_bad_records = 2;
  const Everything all = load(rec, chosen, 0, 6);
  for (std::int32_t label = 0; label < 3; ++label) EXPECT_EQ(std::ranges::count(all.labels, label), 10);
}

TEST(Labels, OfRecordsThatCannotBeReadAreThoseOfTheNextGoodOne) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 10);
  break_frames(rec, {3, 4, 8});
  const RecordSet set({rec});
  expect_error([&] { read_labels(set, 9, 3, 2); }, "no record begins here");
  const std::vector<std::int32_t> labels = read_labels(set, 9, 3, 3);
  EXPECT_EQ(labels, (std::vector<std::int32_t>{0, 1, 2, -1, -1, 2, 0, 1, -1}));
  EXPECT_EQ(class_counts(labels, 3), (std::vector<std::uint32_t>{2, 2, 2}));
  EXPECT_EQ(labels_of_samples(set, 9, 3, 3), (std::vector<std::int32_t>{0, 1, 2, 2, 2, 2, 0, 1, 0}));
}

TEST(Loader, RefusesRecordsOfSeveralLabels) {
  const TemporaryFolder folder;
  RecordWriter writer(folder / "x.rec");
  const std::vector<float> labels{1, 2, 0, 1};
  writer.add(0, labels, bytes_of(encode_image(noise(3, 8, 0), Encoding::raw)));
  writer.finish();
  for (const char* text : {"has 4 labels, and a classifier trains on one class", "from a list (.lst) with one label"})
    expect_error([&] { load(folder / "x.rec", options(), 0, 1); }, text);
}

TEST(Loader, BadRecordsComeOutTheSameForAnyNumberOfThreads) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 150, 3, [](std::uint32_t i, Sample& sample) {
    if (i % 11 == 0) sample.payload.resize(sample.payload.size() / 2);
  });
  LoaderOptions chosen = options(1);
  chosen.max_bad_records = 14;
  const Everything one = load(rec, chosen, 1, 16);
  chosen.threads = 5;
  EXPECT_TRUE(one == load(rec, chosen, 1, 16));

  std::set<std::pair<std::size_t, std::string>> ends;  // batches before the error, and its words
  chosen.max_bad_records = 13;
  for (const int threads : {1, 2, 5}) {
    chosen.threads = threads;
    Loader loader(rec, chosen);
    loader.start(1, slices_of(150, 16));
    std::size_t batches = 0;
    try {
      while (loader.next()) ++batches;
      ADD_FAILURE() << "14 bad records passed as 13";
    } catch (const DataError& error) {
      ends.insert({batches, error.what()});
    }
  }
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_NE(ends.begin()->second.find("more than setting 'max-bad-records' 13"), std::string::npos);
}

TEST(Loader, TheFirstBadRecordIsFirstInOrderAndNotInTime) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 30, 3, [](std::uint32_t i, Sample& sample) {
    if (i == 0) sample.payload = encode_image(noise(3, 1500, 0), Encoding::raw);  // takes long
    if (i == 1 || i == 20) sample.payload = "no image";
  });
  LoaderOptions chosen = options(3);
  chosen.shuffle = false;
  chosen.max_bad_records = 2;
  Loader loader(rec, chosen);
  loader.start(0, {{0, 30}});
  EXPECT_TRUE(loader.next());
  EXPECT_NE(loader.first_bad_record().find("record 1 at byte"), std::string::npos) << loader.first_bad_record();
}

TEST(Loader, APictureThatIsTooThinToResizeIsABadRecord) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 3, 3, [](std::uint32_t i, Sample& sample) {
    if (i == 1) sample.payload = encode_image({3, 1, 60'000, std::vector<std::uint8_t>(180'000)}, Encoding::raw);
  });
  LoaderOptions chosen = options();
  chosen.augment.resize = 256;
  expect_error([&] { load(rec, chosen, 0, 3); }, "the picture is too thin");
  chosen.max_bad_records = 1;
  EXPECT_EQ(load(rec, chosen, 0, 3).ids.size(), 3u);
}

TEST(Loader, AFileWithoutAnyGoodRecordIsAnErrorHoweverManyMayBeBad) {
  const TemporaryFolder folder;
  const Path rec = write_records(folder, 4, 3, [](std::uint32_t, Sample& sample) { sample.payload = "no image"; });
  LoaderOptions chosen = options();
  chosen.max_bad_records = 1000;
  for (const bool evaluates : {false, true}) {
    chosen.leave_out_bad = evaluates;
    expect_error([&] { load(rec, chosen, 0, 4); }, "record");
  }
}

}  // namespace
}  // namespace dtrain::data
