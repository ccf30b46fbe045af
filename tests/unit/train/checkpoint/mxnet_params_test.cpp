#include <gtest/gtest.h>

#include "checkpoint/mxnet_params.hpp"
#include "data/temporary_folder.hpp"

namespace dtrain::train {
namespace {

using namespace std::string_literals;
using data::expect_error;

const std::string kListStart = "\x12\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"s;
const std::string kNameA = "\1\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0arg:a"s;
const std::string kTwoFloats = "\0\0\x80\x3f\0\0\0\xc0"s;
const std::string kCpu = "\1\0\0\0\0\0\0\0"s;
const std::string kTwoExtents = "\2\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"s;  // [2, 1] in 64 bits
const std::string kFloat32 = "\0\0\0\0"s, kVersion2Dense = "\xc9\xfa\x93\xf9\0\0\0\0"s;
const std::string kGolden = kListStart + kVersion2Dense + kTwoExtents + kCpu + kFloat32 + kTwoFloats + kNameA;

MxnetArray only_array(const std::string& file) {
  const auto arrays = parse_mxnet_params(bytes_of(file), "x.params");
  EXPECT_EQ(arrays.size(), 1u);
  return arrays.at(0);
}

TEST(MxnetParams, WritesTheBytesOfTheFormat) {
  const TemporaryFolder folder;
  constexpr std::array<float, 2> values = {1.0f, -2.0f};
  const std::array<NamedTensor, 1> tensors = {{{"arg:a", {2, 1}, values}}};
  AtomicFile file(folder / "x.params");
  write_mxnet_params(file, tensors);
  file.commit();
  EXPECT_EQ(read_file(folder / "x.params"), kGolden);
}

TEST(MxnetParams, ReadsEveryVersionOfTheFormat) {
  const std::string rest = kCpu + kFloat32 + kTwoFloats + kNameA;
  const std::string version0 = "\2\0\0\0\2\0\0\0\1\0\0\0"s, version1 = "\xc8\xfa\x93\xf9"s + kTwoExtents;
  const std::string version3 = "\xca\xfa\x93\xf9\0\0\0\0"s + kTwoExtents;
  for (const std::string& file :
       {kGolden, kListStart + version0 + rest, kListStart + version1 + rest, kListStart + version3 + rest}) {
    const MxnetArray array = only_array(file);
    EXPECT_EQ(array.name, "arg:a");
    EXPECT_EQ(array.shape, (std::vector<std::int64_t>{2, 1}));
    EXPECT_EQ(array.values, (std::vector<float>{1, -2}));
  }
}

TEST(MxnetParams, ReadsHalfAndDoublePrecision) {
  const std::string start = kListStart + kVersion2Dense + kTwoExtents + kCpu;
  EXPECT_EQ(only_array(start + "\2\0\0\0\0\x3c\1\x80"s + kNameA).values, (std::vector<float>{1, -0x1p-24f}));
  EXPECT_EQ(only_array(start + "\1\0\0\0\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\xc0"s + kNameA).values,
            (std::vector<float>{1, -2}));
}

TEST(MxnetParams, EveryTruncationIsRefused) {
  for (std::size_t size = 0; size < kGolden.size(); ++size) {
    expect_error([&] { parse_mxnet_params(bytes_of(kGolden).first(size), "x.params"); }, "x.params: byte ");
  }
  expect_error([&] { parse_mxnet_params(bytes_of(kGolden + "!"), "x"); }, "bytes after the end");
}

TEST(MxnetParams, RefusesCountsAndShapesBeyondTheFile) {
  std::string many = kGolden, wide = kGolden, sparse = kGolden, typed = kGolden, unlike = kGolden;
  many[20] = '\x7f';
  wide[42] = '\x7f';
  sparse[28] = 1;
  typed[60] = 4;
  unlike[0] = 0;
  expect_error([&] { parse_mxnet_params(bytes_of(many), "x"); }, "does not fit the file");
  expect_error([&] { parse_mxnet_params(bytes_of(wide), "x"); }, "more bytes expected");
  expect_error([&] { parse_mxnet_params(bytes_of(sparse), "x"); }, "sparse");
  expect_error([&] { parse_mxnet_params(bytes_of(typed), "x"); }, "MXNet's type 4");
  expect_error([&] { parse_mxnet_params(bytes_of(unlike), "x"); }, "not a list of MXNet arrays");
}

TEST(MxnetParams, RefusesTwoArraysOfOneName) {
  std::string twice = kGolden;
  twice[16] = 2;
  const std::string array = kVersion2Dense + kTwoExtents + kCpu + kFloat32 + kTwoFloats;
  twice.insert(kListStart.size(), array);
  twice[kListStart.size() + 2 * array.size()] = 2;
  expect_error([&] { parse_mxnet_params(bytes_of(twice + kNameA.substr(8)), "x"); },
               "two arrays have the name 'arg:a'");
}

}  // namespace
}  // namespace dtrain::train
