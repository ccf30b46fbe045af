#include <gtest/gtest.h>

#include <dtrain/data/zip.hpp>

#include "archive/zip_member.hpp"
#include "data/archive/archive_files.hpp"
#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

constexpr std::uint64_t kMegabyte = 1u << 20;

SourceBytes source_of(const std::string& zip) { return {"a.zip", bytes_of(zip), nullptr}; }

// A raw deflate stream of so many megabytes of zeros, made of one that is repeated.
std::string deflated_zeros(std::uint64_t megabytes) {
  const std::string zeros(kMegabyte, '\0');
  std::string packed(kMegabyte, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(zeros.data()));
  stream.avail_in = static_cast<uInt>(zeros.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FULL_FLUSH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  std::string all;
  for (std::uint64_t i = 0; i < megabytes; ++i) all += packed;
  return all + std::string("\x03\0", 2);  // the last block, without content
}

std::uint32_t crc_of_zeros(std::uint64_t megabytes) {
  const std::string zeros(kMegabyte, '\0');
  uLong sum = 0;
  for (std::uint64_t i = 0; i < megabytes; ++i)
    sum = crc32(sum, reinterpret_cast<const Bytef*>(zeros.data()), static_cast<uInt>(zeros.size()));
  return static_cast<std::uint32_t>(sum);
}

TEST(ZipMember, ComesInPiecesHoweverLargeItIs) {
  const std::uint64_t megabytes = kMaxInflatedBytes / kMegabyte + 1;
  const std::string stored = deflated_zeros(megabytes);
  const ArchiveMember member{.name = "zeros",
                             .stored = stored.size(),
                             .size = megabytes * kMegabyte,
                             .crc32 = crc_of_zeros(megabytes),
                             .deflated = true};
  MemberPieces pieces(source_of(stored), member);
  std::uint64_t size = 0;
  for (ByteView piece = pieces.next(); !piece.empty(); piece = pieces.next()) {
    ASSERT_LE(piece.size(), kMegabyte);
    size += piece.size();
  }
  EXPECT_EQ(size, member.size);
  expect_error([&] { whole_member(source_of(stored), member); }, "a.zip(zeros): zip: has 1074790400 bytes");
  expect_error([&] { whole_member(source_of(stored), member); }, "unpack it: dtrain data unpack");
}

TEST(ZipMember, IsRefusedWhereItsSizeOrChecksumIsAnother) {
  const std::string stored = deflated_zeros(1);
  const ArchiveMember sound{
      .name = "zeros", .stored = stored.size(), .size = kMegabyte, .crc32 = crc_of_zeros(1), .deflated = true};
  EXPECT_EQ(whole_member(source_of(stored), sound).bytes.size(), kMegabyte);
  for (const std::uint64_t size : {std::uint64_t{0}, kMegabyte - 1, kMegabyte + 1, 1000 * kMegabyte}) {
    ArchiveMember member = sound;
    member.size = size;
    expect_error([&] { whole_member(source_of(stored), member); }, "bytes that the directory states");
  }
  ArchiveMember member = sound;
  member.crc32 ^= 1;
  expect_error([&] { whole_member(source_of(stored), member); }, "its bytes differ from their checksum");
  member = sound;
  member.stored -= 2;
  expect_error([&] { whole_member(source_of(stored), member); }, "zip: damaged: it ends early");
}

TEST(Zip, FilesThatOverlapAreRefused) {
  std::string zip = zip_of({{"a", "one"}, {"b", "two"}});
  const std::size_t second = zip.rfind("PK\x01\x02");
  zip.replace(second, 46, zip.substr(zip.find("PK\x01\x02"), 46));  // the place of the first, with its sizes
  expect_error([&] { unpacked_files(bytes_of(zip), "a.npz"); }, "two of its files overlap");
}

TEST(Zip, SaysWhichFilesAreRead) {
  constexpr std::size_t kFlags = 8, kMethod = 10;
  const auto with = [](std::size_t at, char value) {
    std::string zip = zip_of({{"a", "one"}});
    zip[zip.find("PK\x01\x02") + at] = value;
    return zip;
  };
  const std::string encrypted = with(kFlags, 1), lzma = with(kMethod, 14);
  expect_error([&] { list_zip(source_of(encrypted)); }, "a is encrypted | dtrain reads stored and deflated files");
  expect_error([&] { list_zip(source_of(lzma)); }, "a: packing method 14 | dtrain reads stored and deflated files");
}

TEST(Zip, FilesTogetherAreInflatedUpToALimit) {
  const std::string zeros(kMegabyte, '\0');
  std::string zip = zip_of({{"a", ""}, {"b", zeros}, {"c", ""}, {"d", zeros}});
  EXPECT_EQ(unpacked_files(bytes_of(zip), "a.npz").size(), 4u);
  const std::size_t d = zip.rfind("PK\x01\x02"), b = zip.rfind("PK\x01\x02", zip.rfind("PK\x01\x02", d - 1) - 1);
  for (const std::size_t entry : {b, d}) zip.replace(entry + 24, 4, little<std::uint32_t>(800u << 20));
  expect_error([&] { unpacked_files(bytes_of(zip), "a.npz"); }, "its compressed files hold more than 1.0 GiB");
}

}  // namespace
}  // namespace dtrain::data
