#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "checkpoint/safetensors.hpp"
#include "data/temporary_folder.hpp"

namespace dtrain::train {
namespace {

using data::expect_error;

constexpr std::array<float, 2> kPair = {1.0f, -2.0f};
constexpr std::array<float, 1> kOne = {0.5f};

std::string file_of(std::string header, std::string_view data) {
  const std::uint64_t length = header.size();
  header.insert(0, reinterpret_cast<const char*>(&length), sizeof(length));
  return header.append(data);
}

void expect_refused(std::string_view header, std::string_view data, std::string_view why) {
  const std::string file = file_of(std::string(header), data);
  expect_error([&] { parse_safetensors(bytes_of(file), "x.safetensors"); }, why);
}

TEST(Safetensors, WritesTheBytesOfTheFormat) {
  const TemporaryFolder folder;
  const std::array<NamedTensor, 2> tensors = {{{"a", {2, 1}, kPair}, {"b", {}, kOne}}};
  AtomicFile file(folder / "x.safetensors");
  write_safetensors(file, safetensors_header(tensors, Json::object({{"format", "pt"}})), tensors);
  file.commit();
  const std::string text = R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                           R"("b":{"dtype":"F32","shape":[],"data_offsets":[8,12]}}    )";
  const std::string floats("\0\0\x80\x3f\0\0\0\xc0\0\0\0\x3f", 12);
  EXPECT_EQ(text.size() % 8, 0u);
  EXPECT_EQ(read_file(folder / "x.safetensors"), file_of(text, floats));
}

TEST(Safetensors, ReadsBackNamesShapesAndBytes) {
  const std::array<NamedTensor, 2> tensors = {{{"a", {2, 1}, kPair}, {"b", {}, kOne}}};
  const TemporaryFolder folder;
  AtomicFile file(folder / "x.safetensors");
  write_safetensors(file, safetensors_header(tensors, nullptr), tensors);
  file.commit();
  const SafetensorsFile read(folder / "x.safetensors");
  ASSERT_EQ(read.entries().size(), 2u);
  EXPECT_EQ(read.entries()[0].name, "a");
  EXPECT_EQ(read.entries()[0].shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(text_of(read.bytes(read.entries()[1])), text_of(std::as_bytes(std::span(kOne))));
  EXPECT_EQ(read.data().size(), 12u);
}

TEST(Safetensors, TakesTensorsInTheOrderOfTheirBytes) {
  const std::string file = file_of(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                                   R"("a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})",
                                   "xy");
  const auto entries = parse_safetensors(bytes_of(file), "x");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "a");
}

// A file that has such a tensor beside those of a network is readable.
TEST(Safetensors, KnowsDtypesThatNoNetworkHereHas) {
  for (const auto& [dtype, bytes] : {std::pair("F8_E4M3", 1), {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"C64", 8}}) {
    const std::string table =
        fmt::format(R"({{"a":{{"dtype":"{}","shape":[1],"data_offsets":[0,{}]}}}})", dtype, bytes);
    const std::string file = file_of(table, std::string(static_cast<std::size_t>(bytes), 'x'));
    EXPECT_EQ(parse_safetensors(bytes_of(file), "x").at(0).dtype, dtype);
  }
}

TEST(Safetensors, RefusesLengthsThatTheFileDoesNotHave) {
  expect_error([] { parse_safetensors(bytes_of("1234567"), "x"); }, "too short");
  expect_error([] { parse_safetensors(bytes_of("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "x"); }, "does not fit the file");
  expect_refused(R"({"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})", "12345678", "bytes 0 to 9 of 8");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[2,1]}})", "12", "tensor 'a'");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}})", "1", "an offset of -1");
}

TEST(Safetensors, RefusesGapsOverlapsAndRests) {
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "12", "tensor 'a' begins");
  expect_refused(
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
      "123", "tensor 'b' begins");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "12", "1 bytes after the last tensor");
}

TEST(Safetensors, RefusesShapesThatDoNotFitTheirBytes) {
  expect_refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234",
                 "4 bytes do not hold F32 of shape [2]");
  expect_refused(R"({"a":{"dtype":"F64","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", "",
                 "do not hold F64");
  expect_refused(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", "1", "an extent of -1");
  expect_refused(R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,1]}})", "1", "the dtype 'F31' is unknown");
}

TEST(Safetensors, RefusesHeadersThatAreNotTables) {
  expect_refused("[1]", "", "not a JSON object");
  expect_refused("{\"a\"", "", "not valid JSON");
  expect_refused(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", "1", "\"dtype\" is missing");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", "1", "two numbers");
}

}  // namespace
}  // namespace dtrain::train
