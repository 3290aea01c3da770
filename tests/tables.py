"""Small files as people have them, with what must be understood, noted or refused."""

from __future__ import annotations

import gzip
from typing import Any, NamedTuple


class File(NamedTuple):
    """A file; its columns as (kind, first values); a pattern for every note, in order."""

    content: str | bytes
    columns: dict[str, tuple[str, list[Any]]]
    notes: tuple[str, ...] = ()
    said: dict[str, Any] = {}  # noqa: RUF012
    """What `read_table` is told beside the path."""


class Refused(NamedTuple):
    """A file, or one of its columns, that must be refused, and what the message has to say."""

    content: str | bytes
    message: str
    said: dict[str, Any] = {}  # noqa: RUF012


def number(*values: float | None) -> tuple[str, list[Any]]:
    return "number", list(values)


def category(*values: str | None) -> tuple[str, list[Any]]:
    return "category", list(values)


def date(*values: str | None) -> tuple[str, list[Any]]:
    return "date", list(values)


def time(*values: str | None) -> tuple[str, list[Any]]:
    return "time", list(values)


AB = {"a": number(1, 3), "b": number(2, 4)}
DOT_FOR_THOUSANDS = r"dot is taken to be a mark of thousands in the column 'rent': '1\.278' is 1278.*--decimal '\.'"
COMMAS = r"Decimal commas"

UNDERSTOOD = {
    # dots for thousands
    "dots for thousands": File("area;rent\n85;950\n90;1.278\n", {"area": number(85, 90), "rent": number(950, 1278)}, (DOT_FOR_THOUSANDS,)),
    "dots for thousands, with commas between cells": File("area,rent\n85,950\n90,1.278\n", {"area": number(85, 90), "rent": number(950, 1278)}, (DOT_FOR_THOUSANDS,)),
    "dots for thousands beside decimal commas": File("area;rent\n85,5;1.278\n90,1;2.500\n", {"area": number(85.5, 90.1), "rent": number(1278, 2500)}, (COMMAS, DOT_FOR_THOUSANDS)),
    "dots for thousands and decimal commas": File("rent\n1.278,50\n950,00\n", {"rent": number(1278.5, 950)}, (COMMAS,)),
    "dots for millions": File("a;b\n1.278.000;x\n950;y\n", {"a": number(1278000, 950), "b": category("x", "y")}, (COMMAS,)),
    "three decimals beside others": File("a,b\n1.278,2.5\n9.950,3.25\n", {"a": number(1.278, 9.95), "b": number(2.5, 3.25)}),
    "three decimals below one": File("a,b\n1.278,x\n0.950,y\n", {"a": number(1.278, 0.95), "b": category("x", "y")}),
    "three decimals and nothing else": File("a,b\n1.278,x\n9.950,y\n", {"a": number(1.278, 9.95), "b": category("x", "y")}, ("dot is taken to be the decimal mark.*--decimal ','",)),
    "three decimals, and the user knows": File("a,b\n1.278,x\n9.950,y\n", {"a": number(1278, 9950), "b": category("x", "y")}, (), {"decimal": ","}),
    "large numbers without a mark": File("a;b\n1.278;x\n1500;y\n", {"a": number(1.278, 1500), "b": category("x", "y")}, ("dot is taken to be the decimal mark",)),
    # decimal commas
    "decimal commas as target": File("a;price\n1;12,5\n2;13,75\n", {"a": number(1, 2), "price": number(12.5, 13.75)}, (r"'price': '12,5' is 12\.5",)),
    "decimal commas in quotes": File('a,price\n1,"12,5"\n2,"13,75"\n', {"a": number(1, 2), "price": number(12.5, 13.75)}, (COMMAS,)),
    "decimal commas between tabs": File("a\tprice\n1\t12,5\n2\t13,75\n", {"a": number(1, 2), "price": number(12.5, 13.75)}, (COMMAS,)),
    "decimal commas in a single column": File("price\n12,5\n13,75\n", {"price": number(12.5, 13.75)}, (COMMAS,)),
    "decimal commas with three digits": File("a;b\n1,278;x\n9,912;y\n", {"a": number(1.278, 9.912), "b": category("x", "y")}, (r"comma is taken to be the decimal mark.*'1,278' is 1\.278",)),
    "decimal commas in two inputs": File("a;b;y\n1,5;2,5;1\n3,5;4,5;2\n", {"a": number(1.5, 3.5), "b": number(2.5, 4.5), "y": number(1, 2)}, ("in the columns 'a', 'b'",)),
    "decimal commas with exponents": File("a;b\n1,5e3;x\n2E-1;y\n", {"a": number(1500, 0.2), "b": category("x", "y")}, (COMMAS,)),
    "decimal commas below one": File("a;b\n,5;x\n-0,25;y\n", {"a": number(0.5, -0.25), "b": category("x", "y")}, (COMMAS,)),
    # currencies and thousands
    "dollars": File('a,price\n1,"$1,419,139"\n2,"$950,000"\n', {"a": number(1, 2), "price": number(1419139, 950000)}, (r"'\$' is taken off.*'\$1,419,139' is 1419139",)),
    "dollars and cents": File("a;price\n1;$1,419.50\n2;-$3.20\n", {"a": number(1, 2), "price": number(1419.5, -3.2)}, (r"'\$' is taken off",)),
    "dollars between tabs": File("a\tprice\n1\t$1,419\n2\t$950\n", {"a": number(1, 2), "price": number(1419, 950)}, (r"comma is taken to be a mark of thousands", r"'\$' is taken off")),
    "euros behind": File("a;price\n1;1.419,50 €\n2;950,00 €\n", {"a": number(1, 2), "price": number(1419.5, 950)}, ("'€' is taken off", COMMAS)),
    "francs": File("a;price\n1;CHF 1'200.50\n2;CHF 900.-\n", {"a": number(1, 2), "price": number(1200.5, 900)}, ("'CHF' is taken off",)),
    "apostrophes for thousands": File("a;b\n1'200;x\n12'345.5;y\n", {"a": number(1200, 12345.5), "b": category("x", "y")}),
    "typographic apostrophes": File("a;b\n1’200;x\n900;y\n", {"a": number(1200, 900), "b": category("x", "y")}),
    "spaces for thousands": File("a;b\n1 200;x\n12 345,5;y\n", {"a": number(1200, 12345.5), "b": category("x", "y")}, (COMMAS,)),
    "narrow spaces for thousands": File("a;b\n1\u202f200;x\n12\u00a0345,5;y\n", {"a": number(1200, 12345.5), "b": category("x", "y")}, (COMMAS,)),
    "lakhs": File('a,b\n"12,34,567",x\n"5,00,000",y\n', {"a": number(1234567, 500000), "b": category("x", "y")}),
    "parentheses for losses": File('a,b\n"(1,200.50)",x\n300,y\n', {"a": number(-1200.5, 300), "b": category("x", "y")}),
    "a true minus, and one behind": File("a,b\n−5,x\n3-,y\n", {"a": number(-5, -3), "b": category("x", "y")}),
    "a currency now and then": File("a,b\n$12,x\n13,y\n", {"a": number(12, 13), "b": category("x", "y")}, (r"'\$' is taken off",)),
    # gaps
    "a hyphen as a gap": File("a,y\n1,2\n-,3\n4,5\n", {"a": number(1, None, 4), "y": number(2, 3, 5)}, ("'-' is taken as a gap in the column 'a': 1 of 3 rows, first line 3",)),
    "a hyphen among decimal commas": File("a;y\n1,5;2\n-;3\n4,5;5\n", {"a": number(1.5, None, 4.5), "y": number(2, 3, 5)}, ("'-' is taken as a gap", COMMAS)),
    "a dash among dates": File("d,y\n2020-01-28,2\n–,3\n2020-02-28,5\n", {"d": date("2020-01-28", None, "2020-02-28"), "y": number(2, 3, 5)}, ("'–' is taken as a gap",)),
    "a hyphen among words": File("city,y\nGraz,2\n-,3\nWien,5\n", {"city": category("Graz", None, "Wien"), "y": number(2, 3, 5)}, ("'-' is taken as a gap",)),
    "a minus that is a label": File("rh,y\n+,2\n-,3\n+,5\n", {"rh": category("+", "-", "+"), "y": number(2, 3, 5)}),
    "usual marks": File("a,y\nNA,1\nn/a,2\n?,3\nNaN,4\n7,5\n", {"a": number(None, None, None, None, 7), "y": number(1, 2, 3, 4, 5)}),
    "dots as gaps": File("a,y\n.,1\n..,2\n7,5\n8,9\n", {"a": number(None, None, 7, 8), "y": number(1, 2, 5, 9)}, (r"'\.' is taken", r"'\.\.' is taken")),
    "Excel's errors": File("a,y\n#DIV/0!,1\n#N/A,2\n7,5\n8,9\n", {"a": number(None, None, 7, 8), "y": number(1, 2, 5, 9)}),
    "unknown numbers": File("a,y\nunknown,1\n7,5\n8,9\n", {"a": number(None, 7, 8), "y": number(1, 5, 9)}, ("'unknown' is taken as a gap",)),
    "none of the categories": File("a,y\nNone,1\nmild,5\nmild,9\n", {"a": category(None, "mild", "mild"), "y": number(1, 5, 9)}, ("'None' is taken as a gap",)),
    "a code that may be a gap": File("a,y\n-999,1\n7,5\n8,9\n", {"a": number(-999, 7, 8), "y": number(1, 5, 9)}, ("-999, which often means a gap, is taken as a number.*--gap=-999",)),
    "a code that is a gap": File("a,y\n-999,1\n7,5\n8,9\n", {"a": number(None, 7, 8), "y": number(1, 5, 9)}, (), {"gaps": ["-999"]}),
    # last rows
    "a last row of totals": File("city,y\nGraz,2\nWien,3\nTotal,5\n", {"city": category("Graz", "Wien"), "y": number(2, 3)}, ("Line 4 with sums or means left out: 'Total | 5'",)),
    "totals of numbers": File("a;b\n1;2\n3;4\nSumme:;6\n", AB, ("Line 4 with sums",)),
    "a total and a mean": File("a,b\n1,2\n3,4\nTotal,6\nMean,3\n", AB, ("Lines 4 and 5 with sums or means",)),
    "a city called Total": File("city,y\nTotal,2\nWien,3\nTotal,5\n", {"city": category("Total", "Wien", "Total"), "y": number(2, 3, 5)}),
    "a source below": File("a,b\n1,2\n3,4\nSource: our shop\n", AB, ("Line 4 below the table left out: 'Source: our shop'",)),
    # per cent and units
    "per cent": File("a,y\n12%,1\n13%,2\n", {"a": number(12, 13), "y": number(1, 2)}, ("'%' is taken off in the column 'a': '12%' is 12",)),
    "per cent with decimal commas": File("a;y\n12,5 %;1\n13 %;2\n", {"a": number(12.5, 13), "y": number(1, 2)}, ("'%' is taken off", COMMAS)),
    "per cent as target": File("a,y\n1,12.5%\n2,-3%\n", {"a": number(1, 2), "y": number(12.5, -3)}, ("'%' is taken off",)),
    "a unit behind": File("a,y\n12 kg,1\n13.5 kg,2\n", {"a": number(12, 13.5), "y": number(1, 2)}, ("'kg' is taken off",)),
    "a word behind all numbers": File("a,y\n12 months,1\n24 months,2\n36 months,3\n", {"a": number(12, 24, 36), "y": number(1, 2, 3)}, ("'months' is taken off.*--category",)),
    "a line of units": File("t,T\ns,°C\n0.5,20\n1.0,21\n", {"t": number(0.5, 1), "T": number(20, 21)}, (r"Line 2 between names and values left out: 's \| °C'",)),
    # labels with digits
    "ordinals": File("a,y\n1st,1\n2nd,2\n3rd,3\n", {"a": category("1st", "2nd", "3rd"), "y": number(1, 2, 3)}),
    "wheels": File("a,y\n4WD,1\n2WD,2\n4WD,3\n", {"a": category("4WD", "2WD", "4WD"), "y": number(1, 2, 3)}),
    "ranges": File("age,y\n18-25,1\n26-35,2\n", {"age": category("18-25", "26-35"), "y": number(1, 2)}, ("looks like numbers or dates is taken as categories in the column 'age': such as '18-25'",)),
    "labels, as the user says": File("a,y\n1,1\n12a,2\n2,3\n", {"a": category("1", "12a", "2"), "y": number(1, 2, 3)}, (), {"categories": ["a"]}),
    "post codes": File("zip,y\n01234,1\n12345,2\n", {"zip": number(1234, 12345), "y": number(1, 2)}, ("Leading zeros.*'01234' is 1234.*--category",)),
    "many digits": File("no,y\n123456789012345678,1\n5,2\n", {"no": number(123456789012345680.0, 5), "y": number(1, 2)}, ("many digits",)),
    "a few numbers among words": File("a,y\nred,1\nblue,2\n7,3\n", {"a": category("red", "blue", "7"), "y": number(1, 2, 3)}, ("looks like numbers.*such as '7'",)),
    # sep= lines, preambles
    "sep=;": File("sep=;\na;b\n1;2\n3;4\n", AB),
    "sep=, with text of semicolons": File('sep=,\r\na,"b;c"\r\n1,x;y\r\n3,z;w\r\n', {"a": number(1, 3), "b;c": category("x;y", "z;w")}),
    "sep=tab": File("SEP=\t\na\tb\n1\t2\n3\t4\n", AB),
    "a title": File("Report of sales\na,b\n1,2\n3,4\n", AB, ("Line 1 above the table left out: 'Report of sales'",)),
    "a title as Excel writes it": File("Sales 2020;;\na;b;c\n1;2;x\n3;4;y\n", AB | {"c": category("x", "y")}, ("Line 1 above",)),
    "comments": File("# made by hand\n# in 2020\na,b\n1,2\n3,4\n", AB, ("Lines 1 and 2 above the table left out: '# made by hand'",)),
    "a block of facts": File("Station,Graz\nHeight,353\n\nd,t\n2020-01-01,1\n2020-01-02,2\n2020-01-03,3\n2020-01-04,4\n", {"d": date("2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"), "t": number(1, 2, 3, 4)}, ("Lines 1 and 2 above",)),
    # encodings
    "UTF-16 with its mark": File("a;grün\n1;2\n3;4\n".encode("utf-16"), {"a": number(1, 3), "grün": number(2, 4)}),
    "UTF-16 without": File("a;grün\n1;2\n3;4\n".encode("utf-16-le"), {"a": number(1, 3), "grün": number(2, 4)}),
    "UTF-16, big-endian, decimal commas": File("\ufeffa;b\n1,5;2\n3,5;4\n".encode("utf-16-be"), {"a": number(1.5, 3.5), "b": number(2, 4)}, (COMMAS,)),
    "UTF-8 with its mark": File("\ufeffa,b\n1,2\n3,4\n", AB),
    "Windows' euros": File("a;preis in €\n1;2\n3;4\n".encode("cp1252"), {"a": number(1, 3), "preis in €": number(2, 4)}, ("Windows-1252.*line 1: '€'",)),
    "Windows' euros beside numbers": File("a;b\n1;2 €\n3;4 €\n".encode("cp1252"), {"a": number(1, 3), "b": number(2, 4)}, ("Windows-1252.*line 2", "'€' is taken off")),
    "Windows' umlauts": File("stadt;y\nKöln;2\nGraz;4\n".encode("cp1252"), {"stadt": category("Köln", "Graz"), "y": number(2, 4)}, ("Windows-1252.*line 2: 'ö'",)),
    "gzipped, by another name": File(gzip.compress(b"a,b\n1,2\n3,4\n"), AB),
    "carriage returns only": File("a,b\r1,2\r3,4\r", AB),
    # quotes and separators
    "a separator in a name": File('"area, living";price\n1,5;2\n3,5;4\n', {"area, living": number(1.5, 3.5), "price": number(2, 4)}, (COMMAS,)),
    "a separator in a name, with commas": File('"area, living",price\n1,2\n3,4\n', {"area, living": number(1, 3), "price": number(2, 4)}),
    "a separator in cells": File('a,b\n"Graz, Austria",2\n"Wien, Austria",4\n', {"a": category("Graz, Austria", "Wien, Austria"), "b": number(2, 4)}),
    "names of people between semicolons": File("name;y\nDoe, Ann;2\nRoe, Bob;4\n", {"name": category("Doe, Ann", "Roe, Bob"), "y": number(2, 4)}),
    "a line end in a cell": File('a,b\n"x\ny",2\nz,4\n', {"a": category("x\ny", "z"), "b": number(2, 4)}),
    "quotation marks in a cell": File('a,b\n"5"" pipe",2\nz,4\n', {"a": category('5" pipe', "z"), "b": number(2, 4)}),
    "pipes": File("a|b\n1|2\n3|4\n", AB),
    "spaces": File("a  b\n1  2\n3  4\n", AB, ("separated by spaces",)),
    "a space after the comma": File("a, b\n1, 2\n3, 4\n", AB),
    # dates
    "28.01.2020": File("d;y\n28.01.2020;1\n29.02.2020;2\n", {"d": date("2020-01-28", "2020-02-29"), "y": number(1, 2)}),
    "days with dots, beside decimal commas": File("d;y\n28.1.2020;1,5\n1.2.2020;2,5\n", {"d": date("2020-01-28", "2020-02-01"), "y": number(1.5, 2.5)}, (COMMAS,)),
    "days with dots, and times": File("d;y\n28.01.2020 14:30;1\n29.02.2020 00:00;2\n", {"d": date("2020-01-28T14:30:00", "2020-02-29"), "y": number(1, 2)}),
    "01/28/2020": File("d,y\n01/28/2020,1\n02/01/2020,2\n", {"d": date("2020-01-28", "2020-02-01"), "y": number(1, 2)}),
    "1/28/2020 2:30 PM": File("d,y\n1/28/2020 2:30 PM,1\n2/1/2020 12:00 AM,2\n", {"d": date("2020-01-28T14:30:00", "2020-02-01"), "y": number(1, 2)}),
    "1/28/20": File("d,y\n1/28/20,1\n2/1/99,2\n", {"d": date("2020-01-28", "1999-02-01"), "y": number(1, 2)}, ("Two digits are taken as years from 1970 to 2069",)),
    "28/01/2020": File("d,y\n28/01/2020,1\n02/01/2020,2\n", {"d": date("2020-01-28", "2020-01-02"), "y": number(1, 2)}),
    "an order that nothing shows": File("d,y\n01/02/2020,1\n03/04/2020,2\n", {"d": date("2020-01-02", "2020-03-04"), "y": number(1, 2)}, ("month-first, which they don't show in the column 'd': '01/02/2020' is 2020-01-02.*--dates day-first",)),
    "an order that decimal commas suggest": File("d;y\n01/02/2020;1,5\n03/04/2020;2,5\n", {"d": date("2020-02-01", "2020-04-03"), "y": number(1.5, 2.5)}, ("day-first, which", COMMAS)),
    "an order that another column shows": File("d,e\n01/02/2020,13/01/2020\n03/04/2020,14/01/2020\n", {"d": date("2020-02-01", "2020-04-03"), "e": date("2020-01-13", "2020-01-14")}, ("day-first, which",)),
    "an order that the user knows": File("d,y\n01/02/2020,1\n03/04/2020,2\n", {"d": date("2020-02-01", "2020-04-03"), "y": number(1, 2)}, (), {"dates": "day-first"}),
    "dots that show no order": File("d,y\n01.02.2020,1\n03.04.2020,2\n", {"d": date("2020-02-01", "2020-04-03"), "y": number(1, 2)}, ("day-first, which",)),
    "2020-01-28": File("d,y\n2020-01-28,1\n2020-02-01,2\n", {"d": date("2020-01-28", "2020-02-01"), "y": number(1, 2)}),
    "2020/1/28": File("d,y\n2020/1/28,1\n2020/2/1,2\n", {"d": date("2020-01-28", "2020-02-01"), "y": number(1, 2)}),
    "with zones": File("d,y\n2020-01-28T02:00:00+02:00,1\n2020-02-01T00:00:00Z,2\n", {"d": date("2020-01-28", "2020-02-01"), "y": number(1, 2)}, ("zone are in UTC",)),
    "months in words": File("d,y\n28 Jan 2020,1\n1 Feb 2020,2\n", {"d": date("2020-01-28", "2020-02-01"), "y": number(1, 2)}),
    "months in American words": File('d,y\n"January 28, 2020",1\n"February 1, 2020",2\n', {"d": date("2020-01-28", "2020-02-01"), "y": number(1, 2)}),
    "months in German words": File("d;y\n28. März 2020;1\n1. Dezember 2020;2\n", {"d": date("2020-03-28", "2020-12-01"), "y": number(1, 2)}),
    "2010-01": File("d,y\n2010-01,1\n2010-02,2\n", {"d": date("2010-01-01", "2010-02-01"), "y": number(1, 2)}, ("Months are taken as their first day",)),
    "01/2010": File("d,y\n01/2010,1\n12/2010,2\n", {"d": date("2010-01-01", "2010-12-01"), "y": number(1, 2)}, ("Months are taken",)),
    "Jan 2010": File("d,y\nJan 2010,1\nFeb 2010,2\n", {"d": date("2010-01-01", "2010-02-01"), "y": number(1, 2)}, ("Months are taken",)),
    "quarters": File("d,y\n2010Q1,1\n2010Q4,2\n", {"d": date("2010-01-01", "2010-10-01"), "y": number(1, 2)}, ("Quarters are taken",)),
    "20210103": File("d,y\n20210103,1\n20211231,2\n", {"d": date("2021-01-03", "2021-12-31"), "y": number(1, 2)}, ("Eight digits are taken as dates in the column 'd': '20210103' is 2021-01-03",)),
    "20210103 with a gap": File("d;y\n20210103;1\n-;2\n20211231;2\n", {"d": date("2021-01-03", None, "2021-12-31"), "y": number(1, 2, 2)}, ("'-' is taken", "Eight digits")),
    "eight digits that are no dates": File("d,y\n20210103,1\n20211331,2\n", {"d": number(20210103, 20211331), "y": number(1, 2)}),
    "years": File("year,y\n2019,1\n2020,2\n", {"year": number(2019, 2020), "y": number(1, 2)}),
    # times of day
    "14:30": File("t,y\n14:30,1\n09:05,2\n", {"t": time("14:30", "09:05"), "y": number(1, 2)}),
    "14:30:15": File("t,y\n14:30:15,1\n9:05:00.5,2\n", {"t": time("14:30:15", "09:05:00.5"), "y": number(1, 2)}),
    "2:30 PM": File("t,y\n2:30 PM,1\n9am,2\n", {"t": time("14:30", "09:00"), "y": number(1, 2)}),
    "durations": File("t,y\n36:15,1\n9:05,2\n", {"t": time("36:15", "09:05"), "y": number(1, 2)}, ("Durations are taken in hours and minutes",)),
    # columns without names or values
    "an empty column": File("a,e,b\n1,,2\n3,,4\n", AB | {"e": ("empty", [None, None])}, ("No value at all in the column 'e', which is left out",)),
    "a column of gaps": File("a;e;b\n1;NA;2\n3;?;4\n", AB | {"e": ("empty", [None, None])}, ("No value at all",)),
    "a column of hyphens": File("a,e,b\n1,-,2\n3,-,4\n", AB | {"e": ("empty", [None, None])}, ("'-' is taken as a gap", "No value at all")),
    "a comma at the end of all lines": File("a,b,\n1,2,\n3,4,\n", AB, ("Line 1 ends with a separator too many",)),
    "a semicolon at the end of values": File("a;b\n1;2;\n3;4;\n", AB, ("lines end with a separator too many",)),
    "a comma at the end of names": File("a,b,\n1,2\n3,4\n", AB, ("separator too many",)),
    "rows of empty cells": File("a,b\n1,2\n,\n3,4\n,\n", AB, ("Lines 3 and 5, with empty cells only, left out",)),
    "names that are years": File("city,2019,2020\nGraz,1,2\nWien,3,4\n", {"city": category("Graz", "Wien"), "2019": number(1, 3), "2020": number(2, 4)}),
    "no names": File("1.5,red\n2.5,blue\n", {"column 1": number(1.5, 2.5), "column 2": category("red", "blue")}, ("Line 1 holds values",)),
    "no names, and a word that comes again": File("red,3\nblue,7\nred,9\n", {"column 1": category("red", "blue", "red"), "column 2": number(3, 7, 9)}, ("Line 1 holds values",)),
    "numbers for names": File("0,1,2\n5,7,9\n6,8,3\n", {"0": number(5, 6), "1": number(7, 8), "2": number(9, 3)}, ("Line 1 is taken to be the names, though they are numbers",)),
    "row names of pandas": File(",a,b\n0,1,2\n1,3,4\n2,5,7\n", {"column 1": ("identifier", [0, 1, 2]), "a": number(1, 3, 5), "b": number(2, 4, 7)}),
    "row names of R": File('"a"\t"b"\n"u"\t1\t2\n"v"\t3\t4\n', AB | {"column 1": category("u", "v")}, ("no name for the first column",)),
    "names again": File("a,b\n1,2\na,b\n3,4\n", AB, ("Line 3 that repeats the names left out",)),
    # what isn't worth learning from
    "a constant": File("a,b\n1,2\n1,4\n", {"a": ("constant", [1, 1]), "b": number(2, 4)}),
    "identifiers": File("customer_id,b\n83,2\n17,4\n95,4\n", {"customer_id": ("identifier", [83, 17, 95]), "b": number(2, 4, 4)}),
    "names of rows": File("who,b\n" + "".join(f"name {chr(97 + i)},{i % 5}\n" for i in range(12)), {"who": ("identifier", [f"name {chr(97 + i)}" for i in range(5)]), "b": number(0, 1, 2, 3, 4)}),
}  # fmt: skip

REFUSED = {
    "two columns of one name": Refused("a,b,a\n1,2,3\n", "line 1 gives several columns the same name: 'a'; 'a' names columns 1 and 3. Rename"),
    "several names twice": Refused("a;b;a;b\n1;2;3;4\n", "the same name: 'a', 'b'"),
    "names that differ by spaces": Refused('a,b," a "\n1,2,3\n', "the same name: 'a'"),
    "a short line": Refused("a,b\n1,2\n3\n", "line 3 has 1 cell, and line 1 names 2 columns: '3'. Mend this line"),
    "a long line": Refused('a,b\n"x\ny",2\nz,4,5\n', "line 4 has 3 cells"),
    "decimal commas between commas": Refused("a,b\n1,5,2,5\n1,3,2,2\n", "line 2 has 4 cells.*commas are the decimal marks, separate cells by semicolons"),
    "a decimal comma now and then": Refused("a,b\n1.5,1\n2,5,2\n", "line 3 has 3 cells"),
    "an open quotation mark": Refused('a,b\n1,"x\n2,y\n', "from line 2 on can't be told apart"),
    "text after a quotation mark": Refused('a,b\n"x"y,1\n', "from line 2 on can't be told apart"),
    "a workbook": Refused(b"PK\x03\x04....", "an Excel workbook.*Save the sheet as CSV"),
    "a web page": Refused("<!DOCTYPE html><html></html>", "a web page"),
    "JSON": Refused('[{"a": 1}]', "JSON. Convert"),
    "nothing": Refused("", "it is empty"),
    "names only": Refused("a,b\n", "there are no rows below it"),
    "a zero byte": Refused(b"a,b\n1,2\n3,4\n5,6\n7,8\n9,1\n1,\x00\n", "zero byte in line 7"),
    "broken gzip": Refused(b"\x1f\x8b....", "gzipped, and damaged"),
    "UTF-8 but for a byte": Refused("naïve,café\nthé,2\n1,é".encode() + b"\xff\n", "line 3: the text is UTF-8 but for a wrong byte"),
    "a separator that is none": Refused("sep=a\nb\n", "sep=a in line 1, which can't"),
    "a word among numbers": Refused("a,y\n1,2\nabout 5,3\n7,4\n", "'a' holds numbers in 2 of 3 rows, and 'about 5' in line 3. Mend.*--gap 'about 5'.*--category a"),
    "letters behind some numbers": Refused("a,y\n12,2\n13,3\n12a,4\n", "'12a' in line 4"),
    "less than": Refused("a,y\n<5,2\n13,3\n12,4\n", "'<5' in line 2"),
    "infinity": Refused("a,y\ninf,2\n13,3\n12,4\n", "'inf' in line 2"),
    "an underscore": Refused("a,y\n1_000,2\n13,3\n12,4\n", "'1_000' in line 2"),
    "no such day": Refused("d,y\n31.02.2020,2\n01.03.2020,3\n02.03.2020,4\n", "'d' holds dates in 2 of 3 rows, and '31.02.2020' in line 2"),
    "both orders of dates": Refused("d,y\n13/01/2020,2\n01/13/2020,3\n", "days first and with months first: '13/01/2020' in line 2 and '01/13/2020' in line 3"),
    "both decimal marks": Refused("a;y\n1.5;2\n2,5;3\n", "'1.5' in line 2 and '2,5' in line 3. Write them in one way"),
    "either mark, and nothing to tell": Refused("a;y\n1.234;2\n1,234;3\n", "only one mark can be the decimal one"),
    "two currencies": Refused("a,y\n$1,2\n€2,3\n", "mixes units"),
    "some in per cent": Refused("a,y\n12%,2\n0.13,3\n14%,3\n", "mixes units: '12%' in line 2 and '0.13' in line 3"),
    "thousands and millions": Refused("a,y\n1.2k,2\n3M,3\n4k,1\n", "mixes units: '1.2k' in line 2 and '3M' in line 3"),
    "another mark than the user says": Refused("a,y\n1.5,2\n2.345,3\n", "'1.5' in line 2, which isn't written as --decimal , says", {"decimal": ","}),
    "another order than the user says": Refused("d,y\n28.01.2020,2\n27.01.2020,3\n", "--dates month-first says", {"dates": "month-first"}),
    "a mark that is none": Refused("a\n1\n", "decimal mark can be '.' or ','; got ';'", {"decimal": ";"}),
    "an order that is none": Refused("a\n1\n", "Dates can be day-first or month-first", {"dates": "dmy"}),
    "a column that isn't there": Refused("a\n1\n", "no column 'b'", {"categories": ["b"]}),
}  # fmt: skip
