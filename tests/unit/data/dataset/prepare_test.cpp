#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include <dtrain/data/prepare.hpp>
#include <dtrain/data/record.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

std::string big_endian(std::initializer_list<std::uint32_t> numbers) {
  std::string text;
  for (const std::uint32_t number : numbers) {
    for (int shift : {24, 16, 8, 0}) text += static_cast<char>(number >> shift & 255);
  }
  return text;
}

// A folder with `train` and `val` pictures of 2 x 3 in the format of MNIST; picture i has the label i and pixels of i.
void write_mnist(const Path& folder, unsigned train, unsigned val) {
  for (const auto& [name, count] : std::map<std::string, unsigned>{{"train", train}, {"t10k", val}}) {
    std::string images = big_endian({0x803, count, 2, 3}), labels = big_endian({0x801, count});
    for (unsigned i = 0; i < count; ++i) images += std::string(6, static_cast<char>(i)), labels += static_cast<char>(i);
    std::ofstream(folder / (name + "-images-idx3-ubyte")) << images;
    std::ofstream(folder / (name + "-labels-idx1-ubyte")) << labels;
  }
}

class Prepare : public testing::Test {
 protected:
  Prepare() {
    options.name = "mnist";
    options.out = folder / "out";
    options.from = folder.path();
  }
  Path in(std::string_view name) const { return folder / name; }

  TemporaryFolder folder;
  PrepareOptions options;
};

TEST_F(Prepare, WritesTheRecordsOfBothSplits) {
  write_mnist(folder.path(), 5, 2);
  const PrepareResult result = prepare(options);
  EXPECT_EQ(result.train, folder / "out/mnist_train.rec");
  EXPECT_EQ(result.train_records, 5u);
  EXPECT_FALSE(result.already_there);
  const RecordFile file(result.train);
  ASSERT_EQ(file.size(), 5u);
  const Record record = file.read(3);
  Image image;
  decode_image(record.payload, kStoredChannels, image);
  EXPECT_EQ(record.labels, std::vector<float>{3});
  EXPECT_EQ(record.id, 3u);
  EXPECT_EQ(image.pixels, std::vector<std::uint8_t>(6, 3));
  EXPECT_EQ(RecordFile(result.val).size(), 2u);
}

TEST_F(Prepare, KnowsThatTheFilesAreAlreadyThere) {
  write_mnist(folder.path(), 5, 2);
  prepare(options);
  const auto time = std::filesystem::last_write_time(folder / "out/mnist_train.rec");
  EXPECT_TRUE(prepare(options).already_there);
  EXPECT_EQ(std::filesystem::last_write_time(folder / "out/mnist_train.rec"), time);
}

TEST_F(Prepare, WritesPngUnlessRawPixelsAreAskedFor) {
  write_mnist(folder.path(), 5, 2);
  const PrepareResult result = prepare(options);
  EXPECT_EQ(detect_encoding(RecordFile(result.train).read(0).payload), Encoding::png);
  options.out = folder / "raw";
  options.encoding = Encoding::raw;
  EXPECT_EQ(detect_encoding(RecordFile(prepare(options).train).read(0).payload), Encoding::raw);
}

TEST_F(Prepare, TakesUpTheRawRecordsOfAnEarlierVersion) {
  write_mnist(folder.path(), 5, 2);
  options.encoding = Encoding::raw;
  prepare(options);
  options.encoding.reset();
  EXPECT_TRUE(prepare(options).already_there);
}

TEST_F(Prepare, WritesAgainWhatIsDamagedOrDifferent) {
  write_mnist(folder.path(), 5, 2);
  const PrepareResult first = prepare(options);
  const std::string good = read_file(first.train);
  std::filesystem::resize_file(first.train, good.size() - 4);
  EXPECT_FALSE(prepare(options).already_there);
  EXPECT_EQ(read_file(first.train), good);
  const std::string index = read_file(index_path(first.val));
  std::filesystem::remove(index_path(first.val));
  EXPECT_TRUE(prepare(options).already_there);
  EXPECT_EQ(read_file(index_path(first.val)), index);
  options.encoding = Encoding::png;
  expect_error<UsageError>([&] { prepare(options); }, "is there already and holds other records");
  EXPECT_EQ(read_file(first.train), good);
  options.force = true;
  EXPECT_FALSE(prepare(options).already_there);
  EXPECT_TRUE(prepare(options).already_there);
}

TEST_F(Prepare, WritesOverNoOtherRecordsWithOrWithoutTheirIndex) {
  write_mnist(folder.path(), 5, 2);
  make_folder(options.out);
  const Path rec = folder / "out/mnist_train.rec";
  RecordWriter writer(rec);
  for (std::uint64_t i = 0; i < 3; ++i) writer.add(i, 1, bytes_of(std::string_view("of the user")));
  writer.finish();
  const std::string records = read_file(rec);
  for (const bool with_index : {true, false}) {
    if (!with_index) std::filesystem::remove(index_path(rec));
    expect_error<UsageError>([&] { prepare(options); }, "mnist_train.rec: is there already and holds other records");
    EXPECT_EQ(read_file(rec), records);
  }
  options.force = true;
  EXPECT_EQ(RecordFile(prepare(options).train).size(), 5u);
}

TEST_F(Prepare, NamesAPackedFileThatWasCutShort) {
  write_mnist(folder.path(), 5, 2);
  const Path packed = in("train-images-idx3-ubyte.gz");
  gzFile gz = gzopen(packed.c_str(), "wb");
  const std::string content = read_file(in("train-images-idx3-ubyte"));
  gzwrite(gz, content.data(), static_cast<unsigned>(content.size()));
  gzclose(gz);
  EXPECT_EQ(prepare(options).train_records, 5u);
  std::filesystem::resize_file(packed, 20);
  expect_error([&] { prepare(options); }, "train-images-idx3-ubyte.gz: gzip: ends early, after 20 bytes");
}

TEST_F(Prepare, NamesAnIdxFileThatWasCutShort) {
  write_mnist(folder.path(), 5, 2);
  std::filesystem::resize_file(in("train-images-idx3-ubyte"), 30);
  expect_error([&] { prepare(options); }, "train-images-idx3-ubyte: holds 14 bytes behind its header, which says 30");
}

TEST_F(Prepare, NamesCountsThatDiffer) {
  write_mnist(folder.path(), 5, 2);
  std::ofstream(in("t10k-labels-idx1-ubyte")) << big_endian({0x801, 1}) + "\1";
  expect_error([&] { prepare(options); }, "has 2 images, but");
}

TEST_F(Prepare, NamesALabelThatIsTooLargeAndLeavesNothing) {
  write_mnist(folder.path(), 11, 2);
  expect_error([&] { prepare(options); }, "train-labels-idx1-ubyte: item 10: label 10 is not below 10");
  EXPECT_TRUE(std::filesystem::is_empty(options.out));
}

TEST_F(Prepare, ListsWhatItLookedFor) {
  expect_error([&] { prepare(options); }, "no MNIST here: train-images-idx3-ubyte is missing; looked for");
  options.name = "cifar10";
  expect_error([&] { prepare(options); }, "looked for data_batch_1.bin ... data_batch_5.bin and test_batch.bin");
  std::ofstream(in("data_batch_1"));
  expect_error([&] { prepare(options); }, "this is the Python version");
}

TEST_F(Prepare, NamesACifarFileThatIsMissingOrCutShort) {
  options.name = "cifar10";
  std::ofstream(in("data_batch_1.bin"));
  expect_error([&] { prepare(options); }, "data_batch_1.bin: has 0 bytes, not 30730000");
  std::filesystem::resize_file(in("data_batch_1.bin"), 30730000);
  expect_error([&] { prepare(options); }, "data_batch_2.bin: is missing");
}

TEST_F(Prepare, AdvisesTheNearestName) {
  options.name = "cifar1O";
  expect_error<UsageError>([&] { prepare(options); }, "did you mean cifar10?");
  options.name = "kitti";
  expect_error<UsageError>([&] { prepare(options); }, "one of: cifar10, fashion-mnist, mnist, shapes");
}

TEST_F(Prepare, DrawsTheSameShapesFromTheSameSeed) {
  options = {.name = "shapes", .out = folder / "a", .from = "", .train_count = 30, .val_count = 20, .progress = {}};
  const PrepareResult first = prepare(options);
  options.out = folder / "b";
  EXPECT_EQ(read_file(prepare(options).train), read_file(first.train));
  EXPECT_EQ(verify_records(first.val).class_counts, std::vector<std::size_t>(10, 2));
  options.seed = 2;
  options.force = true;
  EXPECT_FALSE(prepare(options).already_there);
  EXPECT_NE(read_file(folder / "b/shapes_train.rec"), read_file(first.train));
}

TEST_F(Prepare, ReadsTheWholeOfCifar10) {
  const char* data = std::getenv("DTRAIN_TEST_DATA");
  if (!data) GTEST_SKIP() << "set DTRAIN_TEST_DATA to the folder that holds cifar-10-batches-bin/";
  options.name = "cifar10";
  options.from = data;
  const PrepareResult result = prepare(options);
  const VerifyReport train = verify_records(result.train), val = verify_records(result.val);
  EXPECT_EQ(train.class_counts, std::vector<std::size_t>(10, 5000));
  EXPECT_EQ(val.class_counts, std::vector<std::size_t>(10, 1000));
  EXPECT_EQ(train.problem_count + val.problem_count, 0u);
  Image image;
  decode_image(RecordFile(result.train).read(0).payload, 3, image);  // a frog: 59, 62, 63 in the top left corner
  EXPECT_EQ(std::vector(image.pixels.begin(), image.pixels.begin() + 3), (std::vector<std::uint8_t>{59, 62, 63}));
}

TEST_F(Prepare, ReadsTheWholeOfFashionMnist) {
  const char* data = std::getenv("DTRAIN_TEST_DATA");
  if (!data) GTEST_SKIP() << "set DTRAIN_TEST_DATA to the folder that holds fashion-mnist/";
  options.name = "fashion-mnist";
  options.from = (Path(data) / "fashion-mnist").string();
  const PrepareResult result = prepare(options);
  EXPECT_EQ(verify_records(result.train).class_counts, std::vector<std::size_t>(10, 6000));
  EXPECT_EQ(verify_records(result.val).class_counts, std::vector<std::size_t>(10, 1000));
}

}  // namespace
}  // namespace dtrain::data
