"""cuobjdump judges kernels: what the compiler made of them for each chip.

No GPU is needed. Each kernel must keep its values in registers, and use the instructions that it was written for. All
native kernels (src/backend/cuda/gpu/native) are judged: a .cu that is not in the table below is a failure, so that none
goes without. Of the kernels that tests replay on a CPU (src/backend/cuda/kernels) those are, which go through whole
activations or weights.
"""

import os
import re
import shutil
import site
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src/backend/cuda/gpu/native"
CHIPS = ("sm_80", "sm_90a")
REPLAYED_CHIPS = ("sm_80", "sm_90")

# What each kernel of a .cu must contain, by the name that is part of the kernel's: patterns of instructions. LDG.E.128
# loads 16 bytes, LDS and STS use shared memory, LDGSTS fills that without a register while the thread goes on, MEMBAR
# orders writes before other blocks read them.
LAST_BLOCK_FOLDS = (r"LDG\.E\.128", r"\bSTS\b", r"\bLDS\b", r"BAR\.SYNC", r"\bMEMBAR\b", r"ATOMG\.E\.(ADD|INC)", r"\bDADD\b")
STAYS_ON_THE_CHIP = (r"LDGSTS\.E\.BYPASS\.128", r"LDGDEPBAR", r"DEPBAR\.LE SB0", r"LDS\.128", r"LDG\.E\.128",
                     r"STG\.E\.128", r"BAR\.SYNC", r"\bMEMBAR\b", r"ATOMG\.E\.(ADD|INC)", r"\bNANOSLEEP\b", r"\bDADD\b")
# LDSM loads fragments, HMMA multiplies them.
COPIES_BESIDE = (r"LDGSTS\.E\.BYPASS\.128", r"\bLDGDEPBAR\b", r"\bDEPBAR\b", r"BAR\.SYNC")
# TMA's loads and stores, barriers in shared memory, and four products of matrices with no wait between them: a compiler
# that cannot keep sums in registers meanwhile (ptxas: "wgmma.mma_async instructions are serialized") waits for each.
TENSOR_CORES = (r"UTMALDG\.2D", r"UTMASTG\.2D|STG\.E\.64", r"SYNCS\.PHASECHK", r"SYNCS\.ARRIVE", r"WARPGROUP\.ARRIVE",
                r"(?s)(HGMMA((?!WARPGROUP\.DEPBAR|HGMMA).)*){4}WARPGROUP\.DEPBAR")
EXPECTED = {"folded_sums": {"NormSums": LAST_BLOCK_FOLDS, "NormGradientSums": LAST_BLOCK_FOLDS,
                            "ColumnSums": LAST_BLOCK_FOLDS, "WhiteningSums": LAST_BLOCK_FOLDS},
            "norm_slabs": {"NormForward": STAYS_ON_THE_CHIP, "NormBackward": STAYS_ON_THE_CHIP},
            "muon_products": {"tensor_products": (*COPIES_BESIDE, r"LDSM\.16\.M", r"HMMA\.16816\.F32"),
                              "float_products": (*COPIES_BESIDE, r"\bLDS", r"\bFFMA\b")},
            "product": {"multiply_matrices": TENSOR_CORES}}
# For other chips these are empty, and never launched.
ONLY_ON_HOPPER = ("product",)
WHOLE_PACKS = (r"LDG\.E\.128", r"STG\.E\.128")
EXPECTED_OF_REPLAYED = {
    **dict.fromkeys(("Activate", "ActivateGradient", "Add", "AveragePool", "AveragePoolGradient", "MaxPool",
                     "MaxPoolGradient", "NormApply", "NormGradient", "NormMaxPool", "NormMaxPoolGradient", "Scale",
                     "UpdateWeights"), WHOLE_PACKS),
    "LoadBlocks": (r"STG\.E\.128",), "WhitenImages": WHOLE_PACKS, "PackWeights": (r"STG\.E\.128",)}
# Of detectors: no kernel may spill.
EXPECTED_OF_DETECTION = {
    **dict.fromkeys(("KeepLevelPixels", "JoinLevels", "TakeLevel", "EnlargePixels", "EnlargePixelsGradient",
                     "KeepRegionPixels", "AlignRegions", "AlignRegionsGradient"), WHOLE_PACKS)}
REPLAYED = {"kernels": EXPECTED_OF_REPLAYED, "detection_kernels": EXPECTED_OF_DETECTION}
NONE_SPILLS = ("detection_kernels",)
# Local memory: where a value goes that no register holds.
SPILLS = ("STL", "LDL")


def skip(reason):
    print(reason)
    sys.exit(77)


def find_tool(name):
    folders = [os.environ.get("PATH", ""), "/usr/local/cuda/bin"]
    folders += [str(path) for base in site.getsitepackages() for path in Path(base).glob("nvidia/*/bin")]
    return shutil.which(name, path=os.pathsep.join(folders)) or skip(f"{name} is missing")


def functions(cuobjdump, disassembler_folder, object_file, chip):
    """The instructions of each kernel, by its mangled name."""
    environment = {**os.environ, "PATH": disassembler_folder + os.pathsep + os.environ.get("PATH", "")}
    text = subprocess.run([cuobjdump, "-sass", "-arch", chip, str(object_file)], env=environment, check=True,
                          capture_output=True, text=True, timeout=300).stdout
    parts = re.split(r"Function : (\S+)\n", text)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def faults_of(source, chip, expected, found, all_of_them):
    """`all_of_them`: every kernel of the source must be expected."""
    faults = [] if found else [f"{source}.cu: no kernel for {chip}"]
    unseen = set(expected)
    for name, instructions in found.items():
        kernels = [kernel for kernel in expected if re.search(rf"\d{kernel}I", name)]
        if not kernels and all_of_them:
            faults.append(f"{source}.cu: add the kernel {name} to EXPECTED")
        for kernel in kernels:
            unseen.discard(kernel)
            faults += [f"{source}.cu, {chip}: {name} has no {pattern}"
                       for pattern in expected[kernel] if not re.search(pattern, instructions)]
        if (kernels or source in NONE_SPILLS) and any(re.search(rf"\b{spill}\b", instructions) for spill in SPILLS):
            faults.append(f"{source}.cu, {chip}: {name} spills registers")
    return faults + [f"{source}.cu, {chip}: no kernel with {kernel}" for kernel in sorted(unseen)]


def main():
    objects = ROOT / "build/release/src/backend/cuda"
    sources = sorted(path.stem for path in SOURCES.glob("*.cu"))
    assert sources, f"no .cu in {SOURCES}"
    if not any((objects / f"{source}.o").exists() for source in sources):
        skip("dtrain was built without CUDA")
    cuobjdump, disassembler = find_tool("cuobjdump"), find_tool("nvdisasm")
    tasks = [(source, chip, EXPECTED.get(source), True) for source in sources
             for chip in (CHIPS[-1:] if source in ONLY_ON_HOPPER else CHIPS)]
    tasks += [(source, chip, expected, False) for source, expected in REPLAYED.items() for chip in REPLAYED_CHIPS]
    faults, judged = [], 0
    for source, chip, expected, all_of_them in tasks:
        if expected is None:
            faults.append(f"{source}.cu: add it to EXPECTED")
            continue
        found = functions(cuobjdump, str(Path(disassembler).parent), objects / f"{source}.o", chip)
        judged += len(found)
        faults += faults_of(source, chip, expected, found, all_of_them)
    for fault in faults:
        print(fault)
    print(f"{judged} kernels, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
