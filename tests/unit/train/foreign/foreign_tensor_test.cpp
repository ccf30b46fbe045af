#include "foreign/foreign_tensor.hpp"

#include <gtest/gtest.h>

#include <array>

#include <dtrain/base/error.hpp>
#include <dtrain/train/weights.hpp>

#include "data/temporary_folder.hpp"
#include "train/small_checkpoint.hpp"
#include "weights/tensor_views.hpp"

namespace dtrain::train {
namespace {

using data::expect_error;

constexpr std::array<float, 1> kNumber = {7};

ForeignTensor number_of_dimensions(std::size_t count) {
  return {.name = "w",
          .shape = std::vector<std::int64_t>(count, 1),
          .strides = std::vector<std::int64_t>(count, 1),
          .dtype = "F32",
          .bytes = std::as_bytes(std::span(kNumber))};
}

TEST(ForeignTensor, HasAsManyDimensionsAsCanBeRead) {
  const ForeignTensor most = number_of_dimensions(kMostDimensions);
  EXPECT_NO_THROW(check_tensor_bytes(most));
  std::array<float, 1> read{};
  copy_values(most, read);
  EXPECT_EQ(read, kNumber);
  expect_error<DataError>([] { check_tensor_bytes(number_of_dimensions(kMostDimensions + 1)); },
                          "33 dimensions; at most 32 are read");
  EXPECT_FALSE(reshaped(most, std::vector<std::int64_t>(kMostDimensions + 1, 1)).has_value());
  EXPECT_FALSE(broadcast(most, std::vector<std::int64_t>(kMostDimensions + 1, 1)).has_value());
}

TEST(ForeignTensor, OfSafetensorsIsCheckedToo) {
  std::string shape = "1";
  for (std::size_t i = 0; i < kMostDimensions; ++i) shape += ",1";
  const std::string header = R"({"w":{"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[0,4]}})";
  const std::array<std::uint64_t, 1> length = {header.size()};
  const TemporaryFolder folder;
  write_file_atomic(folder / "w.safetensors", std::string(text_of(std::as_bytes(std::span(length)))) + header +
                                                  std::string(text_of(std::as_bytes(std::span(kNumber)))));
  expect_error<DataError>([&] { load_weights({.file = folder / "w.safetensors"}, small_graph()); },
                          "w.safetensors: tensor 'w': 33 dimensions; at most 32 are read");
}

}  // namespace
}  // namespace dtrain::train
