// Decodes the coefficients of the usual JPEG (Huffman codes, 8 bits, one scan) in libjpeg's place, 1.5 times as fast,
// and twice where a block is passed over because it lies beside the wanted part of the picture. libjpeg's Huffman
// decoder is two thirds of the time that the loader takes for photographs; it looks at a code and at its value one
// after the other and refills its bits byte by byte.
//
// All else stays libjpeg's: headers, dequantisation, inverse DCT, colours, errors. What connects both is the pointer
// decode_mcu of its entropy decoder, the second member of a structure that all versions have begun alike since 1998.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <stdio.h>  // jpeglib.h takes FILE for granted

#include <jpeglib.h>

#include "huffman_table.hpp"
#include "scan_bits.hpp"

namespace dtrain::data {

// Used again and again by one thread, for one picture at a time.
class JpegScan {
 public:
  JpegScan() = default;
  JpegScan(const JpegScan&) = delete;  // libjpeg points to it

  // After jpeg_start_decompress(), before the first row is read or skipped. Does nothing for unusual and for small
  // pictures, which libjpeg goes on to decode. All bytes of the picture must be in the buffer of `jpeg.src`, and both
  // must stay until the picture is finished or aborted. Damage becomes one of libjpeg's warnings, which must not
  // return. Keeps the memory of the largest file that it has seen.
  void take_over(jpeg_decompress_struct& jpeg);
  // After jpeg_crop_scanline(), with what that returned.
  void keep_columns(const jpeg_decompress_struct& jpeg, JDIMENSION left, JDIMENSION columns);

 private:
  enum class Need { nothing, mean, all };
  struct Block {
    int component;
    Need need;
    const HuffmanTable* dc;
    HuffmanTable* ac;
  };

  static boolean decode_mcu(j_decompress_ptr jpeg, JBLOCKROW* blocks);
  void make_tables(const jpeg_decompress_struct& jpeg);
  void plan_blocks(const jpeg_decompress_struct& jpeg);
  void begin_interval(jpeg_decompress_struct& jpeg);
  void pass_restart_marker(jpeg_decompress_struct& jpeg);
  void take_bytes(jpeg_source_mgr& source);
  void read_unit(JBLOCKROW* blocks);  // nullptr: passes over it
  bool is_read_past_the_end() const { return (end_ - scan_.at) * 8 + scan_.count < 0; }

  std::array<HuffmanTable, NUM_HUFF_TBLS> dc_, ac_;
  std::array<Block, D_MAX_BLOCKS_IN_MCU> blocks_{};  // those of one minimum coded unit (MCU)
  int block_count_ = 0;
  std::vector<std::uint8_t> bytes_;  // of the interval, without stuffing; then zeros
  const std::uint8_t* end_ = nullptr;
  ScanBits scan_;
  // First coefficients of the components' last blocks; sums of damaged files wrap.
  std::array<std::uint32_t, MAX_COMPS_IN_SCAN> means_{};
  JDIMENSION first_column_ = 0, last_column_ = 0;  // of the units that are kept
  JDIMENSION column_ = 0;                          // of the next unit
  unsigned left_ = 0;                              // units up to the next restart marker
  unsigned restarts_ = 0;
};

}  // namespace dtrain::data
