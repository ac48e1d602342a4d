"""Finds the encodings in which bytes are most likely text in some language."""

import unicodedata
from collections.abc import Sequence
from itertools import pairwise

# Names for iconv, by the names of Python's codecs. Of equally likely encodings, the first one is chosen.
ENCODINGS = {
    "cp1252": "CP1252",
    "cp1250": "CP1250",
    "iso8859_2": "ISO-8859-2",
    "cp1255": "CP1255",
    "cp1251": "CP1251",
    "koi8_r": "KOI8-R",
    "iso8859_5": "ISO-8859-5",
    "cp1253": "CP1253",
    "cp1254": "CP1254",
    "cp1256": "CP1256",
    "cp1257": "CP1257",
    "iso8859_13": "ISO-8859-13",
    "cp932": "CP932",
    "euc_jp": "EUC-JP",
    "gb18030": "GB18030",
    "cp949": "CP949",
    "big5": "BIG5",
    "cp874": "CP874",
    "mac_roman": "MACINTOSH",
    "cp866": "CP866",
    "cp850": "CP850",
}
# Letters outside ASCII in usual text of languages with Latin letters. charset-normalizer compares only the most
# frequent letters of a language, and often cannot tell neighbouring code pages apart.
_ALPHABETS = (
    "àâæçéèêëîïôœùûüÿ",  # French
    "äöüß",  # German
    "áéíñóúü",  # Spanish
    "áâãàçéêíóôõúü",  # Portuguese
    "àèéìíîòóùú",  # Italian
    "åäöæøéàóôü",  # Danish, Norwegian, Swedish, Finnish
    "áðéíóúýþæö",  # Icelandic
    "äëïéèöóüçê",  # Dutch
    "àçéèíïóòúü",  # Catalan
    "áčďéěíňóřšťúůýž",  # Czech
    "áäčďéíĺľňóôŕšťúýž",  # Slovak
    "ąćęłńóśźż",  # Polish
    "áéíóöőúüű",  # Hungarian
    "ăâîşţ",  # Romanian
    "čćđšž",  # Bosnian, Croatian, Slovenian
    "ąčęėįšųūž",  # Lithuanian
    "āčēģīķļņšūž",  # Latvian
    "äõöüšž",  # Estonian
    "çğıöşüâîû",  # Turkish
)
_USUAL_MESS, _MAX_MESS = 0.1, 0.25
"""Mess up to which it is no sign of a wrong encoding, as text with many accents has some, and the most in a text."""
_FIT = 2
"""Weight of the share of letters of one alphabet, relative to the coherence."""
_PREFERENCE = 0.05
"""Score of the most frequent encoding, CP1252, in addition to that of its text."""
_CLOSE = 0.07
"""Difference below which two encodings are about equally likely."""
_SYMBOLS = {"Cc", "No", "Sc", "Sk", "Sm", "So"}
_AFTER_WORDS = {*"®™©°²³€"}


def likely_codecs(samples: dict[str, bytes]) -> list[str]:
    """Return the most likely codec of some bytes, and one that is about as likely and reads otherwise, if any.

    `samples` has the bytes by the codecs that can decode them.
    """
    from charset_normalizer import from_bytes  # not at the top, because it is slow to load

    scores: dict[str, float] = {}
    for codec, sample in samples.items():
        found = from_bytes(sample, cp_isolation=[codec], threshold=1).best()
        words = sorted({*sample.decode(codec).split()})
        if found is not None and (mess := found.chaos + _share_of_symbols(words)) <= _MAX_MESS:
            preferred = _PREFERENCE * (codec == "cp1252")
            scores[codec] = round(found.coherence + _FIT * _fit(words) + preferred - max(0, mess - _USUAL_MESS), 2)
    if not scores:
        return []
    best, *others = sorted(scores, key=scores.__getitem__, reverse=True)
    text = samples[best].decode(best)
    close = [each for each in others if scores[each] > scores[best] - _CLOSE and samples[each].decode(each) != text]
    return [best, *close[:1]]


def _fit(words: Sequence[str]) -> float:
    """Return the share of the letters outside ASCII that the most likely alphabet has."""
    letters = [letter for word in words for letter in word.lower() if letter.isalpha() and not letter.isascii()]
    return max(sum(letter in each for letter in letters) for each in _ALPHABETS) / max(1, len(letters))


def _share_of_symbols(words: Sequence[str]) -> float:
    """Return the share of characters outside ASCII that are symbols beside letters, or upper case after lower case."""
    count = 0
    for before, after in pairwise(f" {' '.join(words)} "):
        if not (before + after).isascii():
            count += (
                (before.isalpha() and unicodedata.category(after) in _SYMBOLS and after not in _AFTER_WORDS)
                or (after.isalpha() and (unicodedata.category(before) in _SYMBOLS or before in "¶§"))
                or (before.islower() and after.isupper())
            )
    return count / max(1, sum(not letter.isascii() for word in words for letter in word))
