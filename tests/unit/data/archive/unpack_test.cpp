#include <gtest/gtest.h>

#include <thread>

#include <dtrain/data/copy.hpp>

#include "archive/unpack_folder.hpp"
#include "data/archive/archive_files.hpp"
#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

class Unpack : public testing::Test {
 protected:
  UnpackResult unpack(const std::string& archive) {
    write_file_atomic(folder / "a", archive);
    return unpack_archive(store, {.from = (folder / "a").string(), .out = folder / "out"});
  }

  const std::string large = std::string(3 << 20, 'x');
  const NamedFiles files{{"in/a.txt", "first"}, {"in/b.bin", large}, {"c", ""}};
  TemporaryFolder folder;
  net::ObjectStore store;

  // Unpacks the second file of the archive more than a second after the first, so that a note says how far it came, and
  // then stops. Returns the byte that the note says.
  std::uint64_t unpack_two_files() {
    std::uint64_t reached = 0;
    const auto stop_once_noted = [&](std::uint64_t done, std::uint64_t) {
      reached = done;
      if (std::filesystem::exists(folder / "out/.dtrain-unpack.json")) throw Error("stopped");
      std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    };
    const UnpackOptions options{.from = (folder / "a").string(), .out = folder / "out", .progress = stop_once_noted};
    expect_error<Error>([&] { unpack_archive(store, options); }, "stopped");
    return reached;
  }

  void expect_files() const {
    for (const auto& [name, content] : files) EXPECT_EQ(read_file(folder / "out" / name), content) << name;
    EXPECT_FALSE(std::filesystem::exists(folder / "out/.dtrain-unpack.json"));
  }
};

TEST_F(Unpack, TakesTarGzipAndZipByTheirFirstBytes) {
  for (const std::string& archive : {tar_of(files), zlib_packed(tar_of(files), 16 + MAX_WBITS), zip_of(files)}) {
    std::filesystem::remove_all(folder / "out");
    const UnpackResult result = unpack(archive);
    EXPECT_EQ(result.files, 3u);
    EXPECT_EQ(result.bytes, 5 + large.size());
    expect_files();
  }
}

TEST_F(Unpack, TakesSeveralGzipStreamsBehindEachOther) {
  const std::string tar = tar_of(files);
  unpack(zlib_packed(tar.substr(0, 1000), 16 + MAX_WBITS) + zlib_packed(tar.substr(1000), 16 + MAX_WBITS));
  expect_files();
}

TEST_F(Unpack, GoesOnWhereAZipArchiveWasLeft) {
  write_file_atomic(folder / "a", zip_of(files));
  const std::uint64_t reached = unpack_two_files();
  std::filesystem::remove(folder / "out/in/a.txt");
  const UnpackResult result = unpack_archive(store, {.from = (folder / "a").string(), .out = folder / "out"});
  EXPECT_EQ(result.resumed_at, reached);
  EXPECT_EQ(result.files, 1u);
  EXPECT_FALSE(std::filesystem::exists(folder / "out/in/a.txt"));
}

TEST_F(Unpack, BeginsAnewWithAnotherArchiveOfTheSameNameAndSize) {
  NamedFiles others = files;
  others.front().second = "other";
  const std::string first = tar_of(others), second = tar_of(files);
  ASSERT_EQ(first.size(), second.size());
  write_file_atomic(folder / "a", first);
  std::filesystem::last_write_time(folder / "a", std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  unpack_two_files();
  EXPECT_EQ(unpack(second).resumed_at, 0u);
  expect_files();
}

TEST_F(Unpack, NotesNoSecretOfAUrl) {
  const auto begin = [&](const char* signature) {
    return UnpackFolder(folder / "out", fmt::format("http://user:hunter2@host/a.tar?signature={}", signature), "1");
  };
  const Path note = folder / "out/.dtrain-unpack.json";
  UnpackFolder first = begin("SECRET");
  for (; !std::filesystem::exists(note); std::this_thread::sleep_for(std::chrono::milliseconds(20))) first.reached(5);
  const std::string text = read_file(note);
  EXPECT_EQ(text.find("SECRET"), text.npos) << text;
  EXPECT_EQ(text.find("hunter2"), text.npos) << text;
  EXPECT_EQ(begin("SECRET").where_it_ended(), 5u);
  EXPECT_EQ(begin("OTHER").where_it_ended(), 0u);
}

TEST_F(Unpack, RefusesDamageAndNamesThatLeadAway) {
  const std::string gzip = zlib_packed(tar_of(files), 16 + MAX_WBITS);
  expect_error([&] { unpack(gzip.substr(0, gzip.size() / 2)); }, "gzip: ends early");
  expect_error([&] { unpack(gzip.substr(0, 200) + std::string(100, '?') + gzip.substr(300)); }, "gzip: ");
  expect_error([&] { unpack(zip_of({{"../x", "y"}})); }, "would be written outside of the folder");
  expect_error([&] { unpack(zlib_packed(tar_of({{"/x", "y"}}), 16 + MAX_WBITS)); }, "would be written outside");
  expect_error([&] { unpack(""); }, "is empty");
}

TEST_F(Unpack, RefusesChangedContentThatOnlyAChecksumShows) {
  const auto with_flip = [](std::string archive, std::string_view content) {
    archive.at(archive.find(content)) ^= 1;
    return archive;
  };
  const std::string gzip = zlib_packed(tar_of(files), 16 + MAX_WBITS, 0);
  unpack(gzip);
  expect_files();
  expect_error([&] { unpack(with_flip(gzip, "first")); }, "gzip: incorrect data check");
  expect_error([&] { unpack(with_flip(zip_of(files), "first")); }, "a(in/a.txt): zip: damaged: its bytes differ");
  expect_error([&] { unpack(gzip.substr(0, gzip.size() - 3)); }, "gzip: ends early");
}

TEST_F(Unpack, TakesZerosAndNotesBehindTheEndOfATarGz) {
  const auto gzip = [](const std::string& content) { return zlib_packed(content, 16 + MAX_WBITS); };
  const std::string tar = tar_of(files), zeros(3 << 20, '\0');
  for (const std::string& archive :
       {gzip(tar + zeros), gzip(tar) + gzip(zeros), gzip(tar) + std::string(700, '\0'), gzip(tar) + "a note"}) {
    std::filesystem::remove_all(folder / "out");
    unpack(archive);
    expect_files();
  }
  expect_error([&] { unpack(gzip(tar) + gzip(zeros).substr(0, 100)); }, "gzip: ends early");
}

TEST_F(Unpack, KeepsItsOwnFilesApartFromThoseOfTheArchive) {
  make_folder(folder / "out");
  write_file_atomic(folder / "out/b.part", "of the user");
  const NamedFiles parts{{"a.part", "1"}, {"a", "2"}, {"b", "3"}, {"in/.dtrain-unpack.json", "4"}};
  unpack(tar_of(parts));
  for (const auto& [name, content] : parts) EXPECT_EQ(read_file(folder / "out" / name), content) << name;
  EXPECT_EQ(read_file(folder / "out/b.part"), "of the user");
  for (const char* name : {".dtrain-unpack.json", "./.dtrain-unpack.tmp.1"})
    expect_error([&] { unpack(tar_of({{name, "x"}})); }, "a name that dtrain gives to files of its own");
  expect_error([&] { unpack(zlib_packed(tar_of(files), 16 + MAX_WBITS).substr(0, 100)); }, "gzip: ends early");
  for (const auto& entry : std::filesystem::directory_iterator(folder / "out"))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".dtrain-unpack.")) << entry.path();
}

TEST_F(Unpack, SaysHowToUnpackWhatItCannot) {
  const std::string rest(600, 'x');
  expect_error(
      [&] {
        unpack(std::string("\xfd"
                           "7zXZ\0",
                           6) +
               rest);
      },
      "packed by xz; dtrain unpacks tar, tar.gz and zip");
  expect_error([&] { unpack("BZh9" + rest); }, "decompress it first: bzip2 -d a");
}

TEST_F(Unpack, SaysWhatIsNoArchive) {
  const std::string rest(600, 'x');
  expect_error([&] { unpack(little(std::uint32_t{0xced7230a}) + rest); },
               "a: is a record file, no tar or zip archive | `dtrain data ls`");
  expect_error([&] { unpack(rest); },
               "a: is no tar or zip archive, or one whose first header is damaged | copy it again");
  expect_error([&] { unpack(tar_of({{"a", "1"}}).substr(0, 1024) + rest); }, "tar: byte 1024: a damaged header");
}

// The checksum of a tar header counts the byte of its kind.
std::string of_kind(char kind, std::string tar) {
  constexpr std::size_t kChecksumAt = 148, kChecksumDigits = 6, kKindAt = 156;
  const unsigned long sum = std::stoul(tar.substr(kChecksumAt, kChecksumDigits), nullptr, 8);
  tar[kKindAt] = kind;
  return tar.replace(kChecksumAt, kChecksumDigits, fmt::format("{:06o}", sum + static_cast<unsigned long>(kind - '0')));
}

TEST_F(Unpack, SaysHowToMakeAnArchiveWithoutLinks) {
  expect_error([&] { unpack(of_kind('2', tar_of({{"a", ""}}))); }, "tar -c -h --hard-dereference");
}

TEST_F(Unpack, SaysWhereATarMayBeCutShort) {
  constexpr std::size_t kBlock = 512;
  const std::string tar = tar_of(files);
  const auto without_end = [](const std::string& archive) { return archive.substr(0, archive.size() - 2 * kBlock); };
  EXPECT_FALSE(unpack(tar).lacks_end_mark);
  EXPECT_FALSE(unpack(tar.substr(0, tar.size() - kBlock)).lacks_end_mark);
  EXPECT_TRUE(unpack(without_end(tar)).lacks_end_mark);
  EXPECT_TRUE(unpack(without_end(tar_of({{"a", "x"}})).substr(0, kBlock + 1)).lacks_end_mark) << "inside of padding";
  for (const auto& [content, lacks] : {std::pair(tar, false), std::pair(without_end(tar), true)}) {
    write_file_atomic(folder / "a.tar", content);
    EXPECT_EQ(lacks_end_mark(folder / "a.tar"), lacks);
  }
  expect_error([&] { unpack(tar.substr(0, 100)); }, "ends inside a header, at byte 100 | copy it again");
  expect_error(
      [&] {
        unpack(without_end(of_kind('L', tar_of({{"name", "long"}}))));
      },
      "ends before the file that its last header describes, at byte 1024 | copy it again");
}

}  // namespace
}  // namespace dtrain::data
