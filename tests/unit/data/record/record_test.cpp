#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>

#include <dtrain/data/image.hpp>
#include <dtrain/data/record.hpp>

#include "data/temporary_folder.hpp"
#include "record/record_format.hpp"

namespace dtrain::data {
namespace {

const std::string kMagic("\x0a\x23\xd7\xce", 4);

// Three records: offsets 0, 40 and 80; the payload of each is 6 bytes, so 40 = 8 + 24 + 6 + 2 bytes of padding.
Path three_records(const TemporaryFolder& folder) {
  const Path rec = folder / "three.rec";
  RecordWriter writer(rec);
  for (unsigned id = 0; id < 3; ++id) writer.add(id, static_cast<float>(id) * 10, bytes_of(fmt::format("image{}", id)));
  writer.finish();
  return rec;
}

void overwrite(const Path& path, std::size_t at, std::string_view bytes) {
  std::string content = read_file(path);
  content.replace(at, bytes.size(), bytes);
  std::ofstream(path) << content;
}

TEST(RecordFile, ReadsWhatTheWriterWrote) {
  TemporaryFolder folder;
  const RecordFile file(three_records(folder));
  ASSERT_EQ(file.size(), 3u);
  EXPECT_EQ(file.offset(2), 80u);
  const Record record = file.read(2);
  EXPECT_EQ(record.id, 2u);
  EXPECT_EQ(record.labels, std::vector<float>{20});
  EXPECT_EQ(text_of(record.payload), "image2");
}

TEST(RecordFile, ScansTheFramesWithoutAnIndex) {
  TemporaryFolder folder;
  const Path rec = three_records(folder);
  std::filesystem::remove(index_path(rec));
  const RecordFile file(rec);
  ASSERT_EQ(file.size(), 3u);
  EXPECT_EQ(text_of(file.read(1).payload), "image1");
}

TEST(RecordFile, KeepsThePositionsOfTheIndex) {
  TemporaryFolder folder;
  const Path rec = three_records(folder);
  write_file_atomic(index_path(rec), "2\t80\r\n0\t0\r\n1\t40");
  EXPECT_EQ(text_of(RecordFile(rec).read(0).payload), "image2");
}

TEST(RecordFile, JoinsAPayloadThatHoldsTheMagic) {
  TemporaryFolder folder;
  const std::string payload = kMagic + "abcd" + kMagic + kMagic + "e" + kMagic;
  RecordWriter writer(folder / "cut.rec");
  writer.add(7, 1, bytes_of(payload));
  writer.add(8, 2, bytes_of("next"));
  writer.finish();
  const RecordFile file(folder / "cut.rec");
  const Record copy = Record(file.read(0));
  EXPECT_EQ(text_of(copy.payload), payload);
  EXPECT_EQ(copy.id, 7u);
  EXPECT_EQ(text_of(file.read(1).payload), "next");
}

TEST(RecordFile, CutsPartsWhereDmlcDoes) {
  TemporaryFolder folder;
  RecordWriter writer(folder / "cut.rec");
  writer.add(0, 0, bytes_of("ab" + kMagic + "cd" + kMagic + "xyz"));  // the first magic is not at a multiple of 4
  writer.finish();
  const std::string bytes = read_file(folder / "cut.rec");
  EXPECT_EQ(bytes.substr(4, 4), std::string("\x20\x00\x00\x20", 4));            // first part: 24 + 8 bytes
  EXPECT_EQ(bytes.substr(40, 8), kMagic + std::string("\x03\x00\x00\x60", 4));  // last part: 3 bytes
  EXPECT_EQ(bytes.size(), 52u);
}

TEST(RecordFile, KeepsSeveralLabels) {
  TemporaryFolder folder;
  RecordWriter writer(folder / "boxes.rec");
  const std::vector<float> labels{4, 0.5f, 0.25f};
  writer.add(1, labels, bytes_of("pixels"));
  writer.finish();
  const RecordFile file(folder / "boxes.rec");
  EXPECT_EQ(file.read(0).labels, labels);
  EXPECT_EQ(text_of(file.read(0).payload), "pixels");
}

TEST(RecordFile, NamesTheOffsetOfATruncatedFrame) {
  TemporaryFolder folder;
  const Path rec = three_records(folder);
  std::filesystem::resize_file(rec, 100);
  const char* const error = "three.rec: byte 80: the record has 30 bytes, but the file ends after 12";
  expect_error([&] { RecordFile file(rec); }, error);
  std::filesystem::remove(index_path(rec));
  expect_error([&] { RecordFile file(rec); }, error);
}

TEST(RecordFile, NamesAnIndexThatReachesBehindTheFile) {
  TemporaryFolder folder;
  const Path rec = three_records(folder);
  std::filesystem::resize_file(rec, 80);
  expect_error([&] { RecordFile file(rec); },
               "three.idx: does not fit three.rec: it lists a record at byte 80, but the file has 80");
  expect_error([&] { RecordFile file(rec); }, "delete it");
}

TEST(RecordFile, RefusesAnIndexThatMissesTheEnd) {
  TemporaryFolder folder;
  const Path rec = three_records(folder);
  write_file_atomic(index_path(rec), "0\t0\n1\t40\n");
  expect_error([&] { RecordFile file(rec); }, "its last record ends at byte 80, but the file has 120 bytes");
}

TEST(RecordFile, NamesTheLineOfABadIndex) {
  TemporaryFolder folder;
  const Path rec = three_records(folder);
  for (const char* bad : {"1\t4x", "1 40", "\t40", "1\t", "1\t-4", "1\t99999999999999999999"}) {
    write_file_atomic(index_path(rec), fmt::format("0\t0\n{}\n", bad));
    expect_error([&] { RecordFile file(rec); }, "three.idx: line 2: not \"id<TAB>offset\"");
  }
}

TEST(RecordFile, RefusesAnEmptyFileAndAnEmptyIndex) {
  TemporaryFolder folder;
  const Path rec = three_records(folder);
  write_file_atomic(index_path(rec), "");
  expect_error([&] { RecordFile file(rec); }, "it lists no records");
  write_file_atomic(rec, "");
  expect_error([&] { RecordFile file(rec); }, "three.rec: is empty");
}

TEST(RecordFile, NoticesEveryFlippedBitOfAFrame) {
  TemporaryFolder folder;
  const Path rec = three_records(folder);
  const std::string good = read_file(rec);
  std::filesystem::remove(index_path(rec));
  for (std::size_t bit = 40 * 8; bit < 48 * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    overwrite(rec, 0, bad);
    // Bit 0: a length that stays within its padding moves no frame; what it cuts off is the payload's check to notice.
    if (bit == 44 * 8) continue;
    EXPECT_THROW(RecordFile{rec}, DataError) << "bit " << bit;
  }
}

TEST(RecordFile, ReadsTheOthersWhenOneFrameIsDamaged) {
  TemporaryFolder folder;
  const Path rec = three_records(folder);
  overwrite(rec, 40, "oops");
  const RecordFile file(rec);
  EXPECT_EQ(text_of(file.read(0).payload), "image0");
  expect_error([&] { file.read(1); }, "byte 40: no record begins here (magic 0x73706f6f");
}

TEST(RecordFile, RefusesMoreLabelsThanTheRecordHolds) {
  TemporaryFolder folder;
  const Path rec = three_records(folder);
  overwrite(rec, 40 + 8, std::string("\xff\xff\xff\xff", 4));
  expect_error([&] { RecordFile(rec).read(1); }, "the header counts 4294967295 labels");
}

// The bytes of the worked example: lines of an address, two spaces, and bytes in hex.
std::string bytes_of_man_page() {
  std::ifstream page(Path(DTRAIN_TESTS_DIR).parent_path() / "man/dtrain-records.5");
  std::string bytes, line;
  while (std::getline(page, line)) {
    if (line.substr(0, 4) != fmt::format("{:02x}  ", bytes.size())) continue;
    for (std::size_t at = 4; at + 2 <= line.size() && line[at] != ' '; at += 3) {
      bytes += static_cast<char>(std::stoi(line.substr(at, 2), nullptr, 16));
    }
  }
  return bytes;
}

TEST(RecordWriter, WritesTheBytesOfTheManPage) {
  TemporaryFolder folder;
  RecordWriter writer(folder / "example.rec");
  writer.add(7, 2, bytes_of(encode_image({3, 1, 2, {255, 0, 0, 0, 128, 255}}, Encoding::raw)));
  writer.finish();
  EXPECT_EQ(bytes_of_man_page().size(), 60u);
  EXPECT_EQ(read_file(folder / "example.rec"), bytes_of_man_page());
  EXPECT_EQ(read_file(folder / "example.idx"), "7\t0\n");
}

TEST(RecordWriter, ShowsNothingBeforeFinish) {
  TemporaryFolder folder;
  {
    RecordWriter writer(folder / "new.rec");
    writer.add(0, 0, bytes_of("x"));
    EXPECT_FALSE(std::filesystem::exists(folder / "new.rec"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(RecordWriter, RefusesAnotherEnding) { EXPECT_THROW(RecordWriter("data.idx"), UsageError); }

TEST(RecordFormat, TheEndOfAFarRecordComesFromTheHeadsOfItsParts) {
  constexpr std::uint64_t kStated = std::uint64_t{1} << 40;  // bytes of the file, by what a server says
  const std::vector<float> labels{1};
  std::string file;
  append_record(file, 7, labels, bytes_of(std::string(1000, 'a') + kMagic + std::string(1000, 'b')));
  std::size_t asked = 0;
  const ReadBytes read = [&](std::uint64_t at, std::span<std::byte> into) {
    asked += into.size();
    std::ranges::copy(bytes_of(file).subspan(at, into.size()), into.begin());
  };
  EXPECT_EQ(record_end("far.rec", kStated, 0, read), file.size());
  EXPECT_EQ(asked, 2 * kPartHeadSize);
  const ReadBytes endless = [&](std::uint64_t at, std::span<std::byte> into) {
    const auto kind = static_cast<std::uint32_t>(at == 0 ? PartKind::first : PartKind::middle);
    const std::array<std::uint32_t, 2> head{kRecordMagic, kind << 29 | kMaxPartLength};
    std::ranges::copy(std::as_bytes(std::span(head)), into.begin());
  };
  expect_error([&] { record_end("far.rec", kStated, 0, endless); }, "the record has more than the container's");
}

}  // namespace
}  // namespace dtrain::data
