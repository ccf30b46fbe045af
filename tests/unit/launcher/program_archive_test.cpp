#include <gtest/gtest.h>

#include <cstdlib>

#include <dtrain/base/hash.hpp>
#include <dtrain/launcher/program_archive.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::launcher {
namespace {

TEST(ProgramArchive, IsReadByTarAndHoldsThisProgram) {
  const TemporaryFolder folder;
  const Path tar = folder / "program.tar";
  const ProgramArchive archive = write_program_archive(tar);
  EXPECT_EQ(std::filesystem::file_size(tar), archive.size);
  const std::string command = "tar -xf '" + tar.string() + "' -C '" + (folder / "").string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const Path unpacked = folder / "dtrain", self = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(sha256_hex(MappedFile(unpacked).bytes()), sha256_hex(MappedFile(self).bytes()));
  EXPECT_NE(std::filesystem::status(unpacked).permissions() & std::filesystem::perms::owner_exec,
            std::filesystem::perms::none);
}

TEST(ProgramArchive, HasTheHashOfItsFile) {
  const TemporaryFolder folder;
  const ProgramArchive archive = write_program_archive(folder / "program.tar");
  EXPECT_EQ(archive.sha256, sha256_hex(MappedFile(folder / "program.tar").bytes()));
  EXPECT_EQ(program_archive().sha256, archive.sha256);
}

}  // namespace
}  // namespace dtrain::launcher
